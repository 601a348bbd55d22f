"""Questions about a stream (semantics 8). Each is one statement: it calls the SQL function of the
same name, which has the rule, or reads a view.

Cuts are in their JSON form, `{"0.0": 12, "5.1": "future"}`; times are aware datetimes. A function
that calls a SQL function raises NotFound for a stream that does not exist, NotFound if its argument
is a segment that does not exist, and InvalidInput if a cut names such a segment.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, text

from weir.controller.locks import no_such_stream
from weir.database.connection import Database
from weir.model.names import StreamName

Cut = dict[str, int | str]


class Size(NamedTuple):
    """A number of events, and their bytes as first committed."""

    events: int
    bytes: int


def active_segments(
    connection: Connection, stream: StreamName, at: datetime | None = None
) -> Sequence[Row[Any]]:
    """Return the segments that are active at a time (None: now).

    Columns: segment, key_low, key_high, first_offset.
    """
    return _rows(connection, "active_segments(:stream, :at)", stream, at=at)


def epoch_at(connection: Connection, stream: StreamName, at: datetime) -> int:
    """Return the epoch that was current at a time (semantics 8.2)."""
    return int(_value(connection, "epoch_at(:stream, CAST(:at AS timestamptz))", stream, at=at))


def scale_metadata(
    connection: Connection, stream: StreamName, start: datetime, end: datetime
) -> Sequence[Row[Any]]:
    """Return the epochs between two times.

    Columns: epoch, created_at, cause, splits, merges, segments.
    """
    return _rows(connection, "scale_metadata(:stream, :start, :end)", stream, start=start, end=end)


def successors(connection: Connection, stream: StreamName, segment: str) -> dict[str, list[str]]:
    """Return the successors of a segment, each with all its predecessors (semantics 8.5)."""
    rows = _rows(connection, "successors(:stream, :segment)", stream, segment=segment)
    return {row.successor: row.predecessors for row in rows}


def predecessors(connection: Connection, stream: StreamName, segment: str) -> dict[str, list[str]]:
    """Return the predecessors of a segment, each with all its successors (semantics 8.5)."""
    rows = _rows(connection, "predecessors(:stream, :segment)", stream, segment=segment)
    return {row.predecessor: row.successors for row in rows}


def segments_between(
    connection: Connection, stream: StreamName, start: Cut | None = None, end: Cut | None = None
) -> Sequence[Row[Any]]:
    """Return what to read from one cut (None: the head) to another (None: the tail).

    Columns: segment, key_low, key_high, from_offset, to_offset. Raises InvalidInput if the first
    cut is after the second (semantics 9.5).
    """
    return _rows(
        connection, "segments_between(:stream, CAST(:start AS jsonb), CAST(:end AS jsonb))", stream,
        start=_json(start), end=_json(end),
    )  # fmt: skip


def span(connection: Connection, stream: StreamName, cut: Cut) -> dict[str, int]:
    """Return per segment of a cut the last epoch in which it was active, up to that of the newest
    one (semantics 8.6).
    """
    rows = _rows(connection, "span(:stream, CAST(:cut AS jsonb))", stream, cut=_json(cut))
    return {row.segment: row.epoch for row in rows}


def size_till(connection: Connection, stream: StreamName, cut: Cut) -> Size:
    """Return the size before a cut, counted from the beginning of the stream.

    For programs: the cut may be beyond the tail, which the function for people refuses.
    """
    [row] = _rows(
        connection, "size_till(stream_id(:stream), CAST(:cut AS jsonb))", stream, cut=_json(cut)
    )
    return Size(row.events, row.bytes)


def size_between(connection: Connection, stream: StreamName, start: Cut, end: Cut) -> Size:
    """Return the size between two cuts (semantics 9.5)."""
    [row] = _rows(
        connection, "size_between(:stream, CAST(:start AS jsonb), CAST(:end AS jsonb))", stream,
        start=_json(start), end=_json(end),
    )  # fmt: skip
    return Size(row.events, row.bytes)


def stream_cut_at(connection: Connection, stream: StreamName, at: datetime) -> Cut:
    """Return the cut that was the tail at a time, or the head if that is later (semantics 8.4)."""
    return dict(_value(connection, "stream_cut_at(:stream, :at)", stream, at=at))


def completeness(connection: Connection, stream: StreamName) -> Row[Any] | None:
    """Return up to which event time a stream is complete; None if it has no event time.

    Columns: those of the view `weir.completeness`, with `complete_until` None if no writer states
    anything.
    """
    return connection.execute(
        text("SELECT * FROM completeness WHERE stream = :stream"), {"stream": str(stream)}
    ).one_or_none()


def closed_cut_at(database: Database, stream: StreamName, at: datetime) -> Cut:
    """Close a time, and return the cut that was the tail then, as a starting or stopping point.

    No commit in flight can come before it afterwards. Raises InvalidInput for a future time.
    """
    return database.transaction(
        lambda connection: dict(_value(connection, "closed_cut_at(:stream, :at)", stream, at=at))
    )


def count_between(
    database: Database, stream: StreamName, since: datetime | None, until: datetime | None
) -> int:
    """Close the later time, and return how many events that can still be read were committed after
    `since` (None: all from the head) and up to `until` (None: all up to the tail).

    Raises InvalidInput for a future time.
    """
    call = "count_between(:stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))"
    return database.transaction(
        lambda connection: int(_value(connection, call, stream, since=since, until=until))
    )


def next_cut(connection: Connection, stream: StreamName, cut: Cut, distance: int) -> Cut:
    """Return the cut about `distance` events after another (semantics 16.3)."""
    return dict(
        _value(
            connection, "next_cut(:stream, CAST(:cut AS jsonb), :distance)", stream,
            cut=_json(cut), distance=distance,
        )
    )  # fmt: skip


def stream_info(connection: Connection, stream: StreamName) -> Row[Any]:
    """Return a row of the view `streams`, and the clock that a commit would get now.

    Columns include state, head, tail and sizes. Raises NotFound.
    """
    row = connection.execute(
        text(
            """SELECT s.*, t.next_clock FROM streams s JOIN stream_state t USING (stream)
            WHERE stream = :stream"""
        ),
        {"stream": str(stream)},
    ).one_or_none()
    if row is None:
        raise no_such_stream(stream)
    return row


def _rows(
    connection: Connection, call: str, stream: StreamName, **given: Any
) -> Sequence[Row[Any]]:
    return connection.execute(
        text(f"SELECT * FROM {call}"),  # noqa: S608 - one of the constants above
        {"stream": str(stream), **given},
    ).all()


def _value(connection: Connection, call: str, stream: StreamName, **given: Any) -> Any:
    [[value]] = _rows(connection, call, stream, **given)
    return value


def _json(cut: Cut | None) -> str | None:
    return None if cut is None else json.dumps(cut)
