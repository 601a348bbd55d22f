"""Plan reads: which files hold which events. One statement for any number of files."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, TextClause

from weir.controller.cuts import load_cuts
from weir.controller.locks import StreamRow, read_stream
from weir.controller.missing import Missing, missing_after, missing_between, truncated_after
from weir.controller.queries import Cut, segments_between, stream_cut_at
from weir.controller.streams import schema_by_id
from weir.errors import Truncated
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.model.stream_cut import first_behind
from weir.queries.controller import read_plan as sql


class FileSlice(sql.Slice):
    """A file, and what of it to read: the offsets from `start_offset + first_row` up to
    `start_offset + end_row`, exclusive. Each has a row, but for `holes` of them, whose events were
    erased; `sparse`: the file has such, and the offset of each row (semantics 20).

    `path`: below the warehouse. `first_seq`, `last_seq`: no rank in the file is smaller or larger.
    `first_clock`, `last_clock`: the clocks of the first and the last row to read. If they differ,
    the file has the clock of each row (`compacted`: a file of several commits; semantics 12.5).
    """

    __slots__ = ()

    @property
    def rows(self) -> int:
        """How many events are to be read."""
        return self.end_row - self.first_row - self.holes

    @property
    def whole(self) -> bool:
        """Whether all rows of the file are to be read."""
        return self.first_row == 0 and self.end_row == self.events


class Slices(NamedTuple):
    """What is to be read of a stream."""

    name: str
    stream_id: int
    slices: Sequence[FileSlice]
    fields: list[Field]


def slices_of_stream(connection: Connection, stream_id: int) -> list[FileSlice]:
    """Return the slices of a whole stream, from the head to the tail."""
    rows = connection.execute(sql.SLICES_OF_STREAM, {"stream_id": stream_id})
    return [FileSlice._make(row) for row in rows]


def slices_of_bounds(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> list[FileSlice]:
    """Return the slices of the events within bounds: (segment id, from, to), `to` exclusive."""
    return _slices(connection, sql.SLICES_OF_BOUNDS, stream_id, bounds)


def slices_by_commit(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> list[FileSlice]:
    """Return the slices of the events within bounds like `slices_of_bounds`, each of one commit."""
    return _slices(connection, sql.SLICES_BY_COMMIT, stream_id, bounds)


def _slices(
    connection: Connection,
    statement: TextClause,
    stream_id: int,
    bounds: Sequence[tuple[int, int, int]],
) -> list[FileSlice]:
    listed = [{"segment": s, "first": a, "past": b} for s, a, b in bounds]
    given = {"stream_id": stream_id, "bounds": json.dumps(listed)}
    return [FileSlice._make(row) for row in connection.execute(statement, given)]


def newest_slices(
    connection: Connection, stream_id: int, events: int, before: int | None = None
) -> list[FileSlice]:
    """Return slices of the newest files, each of one commit and the last one written first, that
    hold the last `events` events in write order, and others. `before`: of commits before this
    clock; None: of all.

    Looks at the newest commit first, and at eight times as many before it while these do not
    suffice.
    """
    found: list[FileSlice] = []
    commits = 1
    while True:
        rows = sql.newest(
            connection, stream_id=stream_id, before=before, commits=commits, most=events
        )
        found += [FileSlice._make(row[:-1]) for row in rows if row.path is not None]
        if not rows or sum(one.rows for one in found) >= events:
            return found
        before, commits = rows[0].oldest, commits * 8


def plan_of_bounds(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> tuple[list[FileSlice], list[Field]]:
    """Return the slices within bounds, and the schema with which to read them."""
    return slices_of_bounds(connection, stream_id, bounds), schema_by_id(connection, stream_id)


def plan_of_stream(
    connection: Connection, name: StreamName
) -> tuple[int, list[FileSlice], list[Field]]:
    """Return a stream's id, its slices from head to tail, and its schema. Raises NotFound."""
    stream_id = read_stream(connection, name).stream_id
    return stream_id, slices_of_stream(connection, stream_id), schema_by_id(connection, stream_id)


def plan(
    connection: Connection,
    name: StreamName,
    start: Cut | datetime | None,
    end: Cut | datetime | None,
    on_gap: str = "fail",
) -> tuple[list[FileSlice], list[Field]]:
    """Return the slices to read from one point to another, by segment and offset, and the schema.

    `start`: None for the head; `end`: None for the tail; a time stands for the cut that was the
    tail then, or the head if that is later (close it first: `weir.controller.times`). Call it in a
    snapshot, or it may miss what is truncated between two of its statements. Raises Truncated if
    events after the cut `start` were truncated, unless `on_gap` is "skip".
    """
    stream = read_stream(connection, name)
    start, end = (
        stream_cut_at(connection, name, point) if isinstance(point, datetime) else point
        for point in (start, end)
    )
    asked = 0
    if start is not None:
        asked = _asked(connection, stream, start, end, on_gap)
    # A file may straddle the head. Its rows below the head are truncated like those of other files.
    first, last = readable(connection, stream.stream_id, start, end)
    if start is None and last is not None:
        _check_end(connection, stream, last)
    rows = segments_between(connection, name, first, last)
    bounds = [(r.segment_id, r.from_offset, r.to_offset) for r in rows]
    slices, fields = plan_of_bounds(connection, stream.stream_id, bounds)
    lost = asked - sum(s.end_row - s.first_row for s in slices)
    if start is not None and lost > 0:
        missing = missing_after(connection, stream.stream_id, start, end)
        unknown = Missing(str(name), lost, None, None)
        raise truncated_after(missing or unknown, start, stream.head)
    return slices, fields


def _check_end(connection: Connection, stream: StreamRow, end: Cut) -> None:
    """Check that an end is not before the head. Raises Truncated with what was truncated."""
    head, cut = load_cuts(connection, stream.stream_id, stream.head, end)
    if first_behind(head, cut) is not None:
        lacks = missing_between(connection, stream.name, None, None, empty=True)
        gone = str(lacks) if lacks else f"the events of stream {stream.name} were truncated"
        raise Truncated(
            "events_truncated",
            f"the end {json.dumps(end)} lies before the head, {json.dumps(stream.head)}: {gone}; "
            "give a later end.",
        )


def _asked(
    connection: Connection, stream: StreamRow, start: Cut, end: Cut | None, on_gap: str
) -> int:
    """Return how many events between two cuts must be there: none that `on_gap` may skip.

    Raises InvalidInput for a cut that is not one, and Truncated where metadata was pruned.
    """
    try:
        load_cuts(connection, stream.stream_id, start, *([] if end is None else [end]))
        between = segments_between(connection, stream.name, start, end)
    except Truncated:
        if on_gap == "fail":
            raise
        return 0
    if on_gap == "skip":
        return 0
    return sum(row.to_offset - row.from_offset for row in between)


def readable(
    connection: Connection, stream_id: int, start: Cut | None, end: Cut | None
) -> tuple[Cut | None, Cut | None]:
    """Return what is left to read between two cuts: each cut, or the head where that is later."""
    if start is None:
        return start, end
    to = None if end is None else json.dumps(end)
    row = sql.readable(connection, stream_id=stream_id, end=to, start=json.dumps(start))
    return row.cut, row.end_cut
