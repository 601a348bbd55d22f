"""What people ask about a stream (semantics 8): the SQL functions, as they call them."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, text

from weir.controller.queries import Cut as Cut
from weir.controller.queries import count_between as count_between
from weir.controller.queries import segments_between as segments_between
from weir.controller.queries import stream_cut_at as stream_cut_at
from weir.controller.queries import stream_info as stream_info
from weir.database.connection import Database
from weir.model.names import StreamName


class Size(NamedTuple):
    """A number of events, and their bytes as first committed."""

    events: int
    bytes: int


def active_segments(
    connection: Connection, stream: StreamName, at: datetime | None = None
) -> Sequence[Row[Any]]:
    return _rows(connection, "active_segments(:stream, :at)", stream, at=at)


def epoch_at(connection: Connection, stream: StreamName, at: datetime) -> int:
    [[epoch]] = _rows(connection, "epoch_at(:stream, CAST(:at AS timestamptz))", stream, at=at)
    return int(epoch)


def scale_metadata(
    connection: Connection, stream: StreamName, start: datetime, end: datetime
) -> Sequence[Row[Any]]:
    return _rows(connection, "scale_metadata(:stream, :start, :end)", stream, start=start, end=end)


def successors(connection: Connection, stream: StreamName, segment: str) -> dict[str, list[str]]:
    rows = _rows(connection, "successors(:stream, :segment)", stream, segment=segment)
    return {row.successor: row.predecessors for row in rows}


def predecessors(connection: Connection, stream: StreamName, segment: str) -> dict[str, list[str]]:
    rows = _rows(connection, "predecessors(:stream, :segment)", stream, segment=segment)
    return {row.predecessor: row.successors for row in rows}


def span(connection: Connection, stream: StreamName, cut: Cut) -> dict[str, int]:
    rows = _rows(connection, "span(:stream, CAST(:cut AS jsonb))", stream, cut=json.dumps(cut))
    return {row.segment: row.epoch for row in rows}


def size_till(connection: Connection, stream: StreamName, cut: Cut) -> Size:
    """As programs ask: the cut may be beyond the tail, which the function for people refuses."""
    call = "size_till(stream_id(:stream), CAST(:cut AS jsonb))"
    [row] = _rows(connection, call, stream, cut=json.dumps(cut))
    return Size(row.events, row.bytes)


def size_between(connection: Connection, stream: StreamName, start: Cut, end: Cut) -> Size:
    call = "size_between(:stream, CAST(:start AS jsonb), CAST(:end AS jsonb))"
    [row] = _rows(connection, call, stream, start=json.dumps(start), end=json.dumps(end))
    return Size(row.events, row.bytes)


def closed_cut_at(database: Database, stream: StreamName, at: datetime) -> Cut:
    [[cut]] = database.transaction(lambda c: _rows(c, "closed_cut_at(:stream, :at)", stream, at=at))
    return dict(cut)


def next_cut(connection: Connection, stream: StreamName, cut: Cut, distance: int) -> Cut:
    call = "next_cut(:stream, CAST(:cut AS jsonb), :distance)"
    [[found]] = _rows(connection, call, stream, cut=json.dumps(cut), distance=distance)
    return dict(found)


def _rows(
    connection: Connection, call: str, stream: StreamName, **given: Any
) -> Sequence[Row[Any]]:
    return connection.execute(
        text(f"SELECT * FROM {call}"),
        {"stream": str(stream), **given},
    ).all()
