"""Read which streams a reader group reads, and how far."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text


class GroupStream(NamedTuple):
    """A stream that a group reads. `exists`: it was not deleted since."""

    stream_id: int
    name: str
    exists: bool


def group_streams(connection: Connection, name: str) -> list[GroupStream]:
    """Return the streams of a group, also the deleted ones, by id; none for an unknown group."""
    rows = connection.execute(
        text(
            """SELECT s.stream_id, s.stream_name, s.state <> 'deleted'
            FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name ORDER BY s.stream_id"""
        ),
        {"name": name},
    )
    return [GroupStream(*row) for row in rows]


def group_tails(connection: Connection, name: str) -> dict[int, dict[str, Any]]:
    """Return by stream id how far a run has to read: to the tail as it is now, or to the group's
    end."""
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, coalesce(gs.end_cut, tail_cut(gs.stream_id)) AS tail
            FROM reader_group_stream gs
            JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :name AND s.state <> 'deleted'"""
        ),
        {"name": name},
    )
    return {row.stream_id: dict(row.tail) for row in rows}
