"""Questions about a stream (semantics 8). Each is one statement: it calls the SQL function of the
same name, which has the rule, or reads a view.

Cuts are in their JSON form, `{"0.0": 12, "5.1": "future"}`; times are aware datetimes. A function
that calls a SQL function raises NotFound for a stream that does not exist, and InvalidInput if a
cut names a segment that does not exist.
"""

import json
from datetime import datetime

from sqlalchemy import Connection

from weir.controller.locks import no_such_stream
from weir.database.connection import Database
from weir.model.names import StreamName
from weir.queries.controller import queries as sql

Cut = dict[str, int | str]


def segments_between(
    connection: Connection, stream: StreamName, start: Cut | None = None, end: Cut | None = None
) -> list[sql.Between]:
    """Return what to read from one cut (None: the head) to another (None: the tail).

    Raises InvalidInput if the first cut is after the second (semantics 9.5).
    """
    return sql.segments_between(
        connection,
        stream=str(stream),
        start=None if start is None else json.dumps(start),
        end=None if end is None else json.dumps(end),
    )


def stream_cut_at(connection: Connection, stream: StreamName, at: datetime) -> Cut:
    """Return the cut that was the tail at a time, or the head if that is later (semantics 8.4)."""
    return sql.stream_cut_at(connection, stream=str(stream), at=at)


def count_between(
    database: Database, stream: StreamName, since: datetime | None, until: datetime | None
) -> int:
    """Close the later time, and return how many events that can still be read were committed after
    `since` (None: all from the head) and up to `until` (None: all up to the tail).

    Raises InvalidInput for a future time.
    """
    return database.transaction(
        lambda c: sql.count_between(c, stream=str(stream), since=since, until=until)
    )


def stream_info(connection: Connection, stream: StreamName) -> sql.StreamInfo:
    """Return the head and the tail of a stream. Raises NotFound."""
    if (found := sql.stream_info(connection, stream=str(stream))) is None:
        raise no_such_stream(stream)
    return found
