"""Fill the retention set: the recorded tail cuts from which retention chooses where to truncate."""

from datetime import datetime
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.names import StreamName
from weir.queries.retention import capture as sql


class Captured(TypedDict):
    """The tail of a stream, which was recorded, and the events and bytes before it."""

    stream: str
    cut: Cut
    events: int
    bytes: int


def capture(database: Database) -> list[Captured]:
    """Record the tail cut of each stream that changed since its last record. Return the records.

    One statement reads all segments of a stream, so that a record is the tail of one moment. A
    record is strictly later than the one before it, by at least the stream's `cuts_every` seconds.
    The next run records what changes during this one. Late or repeated runs change nothing.
    """

    def work(connection: Connection) -> list[sql.Captured]:
        sql.wait_for_others(connection)
        return sql.capture(connection)

    return [
        {"stream": row.stream, "cut": row.cut, "events": row.events, "bytes": row.bytes}
        for row in commit_once(database, work)
    ]


def recorded_cut(
    connection: Connection, stream: StreamName, at: datetime
) -> dict[str, int | str] | None:
    """Return the newest cut of the retention set recorded at or before a time; None if there is
    none.
    """
    return sql.recorded_cut(connection, stream=str(stream), at=at)
