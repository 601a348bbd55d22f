"""Where a group reads. Made by `make queries` from sql/queries/retention/manual_truncation.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

POSITION = text(
    """SELECT g.group_id, group_cut(g.group_id, gs.stream_id) AS position
FROM reader_group g JOIN reader_group_stream gs USING (group_id)
WHERE g.name = :group AND gs.stream_id = :stream_id"""
)


class Position(NamedTuple):
    """A row of `position`."""

    group_id: int
    position: dict[str, int | str]


def position(connection: Connection, *, group: str, stream_id: int) -> Position | None:
    """Return a group that reads a stream, and where it reads next."""
    result = connection.execute(POSITION, {"group": group, "stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Position._make(row)
