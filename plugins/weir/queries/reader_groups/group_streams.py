"""What groups read. Made by `make queries` from sql/queries/reader_groups/group_streams.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

GROUP_STREAMS = text(
    """SELECT s.stream_id, s.stream_name AS name, s.state <> 'deleted' AS exists
FROM reader_group_stream gs
JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
WHERE g.name = :name ORDER BY s.stream_id"""
)


class GroupStream(NamedTuple):
    """A row of `group_streams`."""

    stream_id: int
    name: str
    exists: bool


def group_streams(connection: Connection, *, name: str) -> list[GroupStream]:
    """Return the streams of a group by id, also the deleted ones."""
    result = connection.execute(GROUP_STREAMS, {"name": name})
    return [GroupStream._make(row) for row in result]


GROUP_TAILS = text(
    """SELECT gs.stream_id, coalesce(gs.end_cut, tail_cut(gs.stream_id)) AS tail
FROM reader_group_stream gs
JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
WHERE g.name = :name AND s.state <> 'deleted'"""
)


class GroupTail(NamedTuple):
    """A row of `group_tails`."""

    stream_id: int
    tail: Cut


def group_tails(connection: Connection, *, name: str) -> list[GroupTail]:
    """Return how far a run of a group reads its streams."""
    result = connection.execute(GROUP_TAILS, {"name": name})
    return [GroupTail._make(row) for row in result]
