"""Read which streams a reader group reads, and how far."""

from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.queries.reader_groups import group_streams as sql


def group_streams(connection: Connection, name: str) -> list[sql.GroupStream]:
    """Return the streams of a group, also the deleted ones (which do not `exist`), by id; none for
    an unknown group."""
    return sql.group_streams(connection, name=name)


def group_tails(connection: Connection, name: str) -> dict[int, Cut]:
    """Return by stream id how far a run has to read: to the tail as it is now, or to the group's
    end."""
    return {row.stream_id: row.tail for row in sql.group_tails(connection, name=name)}
