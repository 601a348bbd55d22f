"""Streaming queries that read groups. Made by `make queries` from sql/queries/reader_groups/batches/streaming_query.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

KEEP = text(
    """WITH counted AS (
    UPDATE reader_group SET next_token = next_token + 1
    WHERE group_id = :group_id AND CAST(:old AS bigint) IS NULL
)
UPDATE reader SET token = :new, lease_until = 'infinity'
WHERE group_id = :group_id AND reader_id = :reader_id AND lease_until > '-infinity'
  AND token = coalesce(:old, token)
RETURNING token, (
    SELECT max(b.batch_id) FROM reader_batch b
    WHERE b.group_id = :group_id AND b.batch_id > :after AND b.state = 'committed') AS newest"""
)


class Kept(NamedTuple):
    """A row of `keep`."""

    token: int
    newest: int | None


def keep(
    connection: Connection,
    *,
    group_id: int | None,
    old: int | None,
    new: int,
    reader_id: str,
    after: int,
) -> Kept | None:
    """Make the lease of a query infinite; return its token, and the newest batch that it does not know."""
    result = connection.execute(
        KEEP, {"group_id": group_id, "old": old, "new": new, "reader_id": reader_id, "after": after}
    )
    row = result.one_or_none()
    return None if row is None else Kept._make(row)
