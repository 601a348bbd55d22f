"""Readers of a group: who is there. Made by `make queries` from sql/queries/reader_groups/groups/readers.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

OTHER_READER = text(
    """SELECT reader_id, lease_until = 'infinity' AS query, joined_at FROM reader
WHERE group_id = :group_id AND reader_id <> :reader_id
ORDER BY lease_until DESC, reader_id LIMIT 1"""
)


class OtherReader(NamedTuple):
    """A row of `other_reader`."""

    reader_id: str
    query: bool
    joined_at: datetime


def other_reader(connection: Connection, *, group_id: int, reader_id: str) -> OtherReader | None:
    """Return another reader of a group: a streaming query rather than others."""
    result = connection.execute(OTHER_READER, {"group_id": group_id, "reader_id": reader_id})
    row = result.one_or_none()
    return None if row is None else OtherReader._make(row)


RENEW = text(
    """UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token"""
)


def renew(connection: Connection, *, lease: float, group: str, reader_id: str, token: int) -> int:
    """Renew a reader's lease by `lease` seconds."""
    result = connection.execute(
        RENEW, {"lease": lease, "group": group, "reader_id": reader_id, "token": token}
    )
    return result.rowcount
