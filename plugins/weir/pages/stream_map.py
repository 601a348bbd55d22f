"""A stream as a map: its key space over time, in a bounded number of parts.

The number of statements does not depend on the stream, and what they look at not on its commits:
the events of a part are the difference of two offsets, each found by its time. Sums per hour would
make appends dearer, for pictures that nobody may look at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy import Connection

from weir.controller.locks import no_such_stream
from weir.errors import InvalidInput
from weir.model.clock import SECOND, clock_time, say_time
from weir.model.names import StreamName
from weir.model.segment import segment_name
from weir.model.segment_rates import Commit
from weir.pages.rates import Level, Levels, Slice, slices_of
from weir.queries.pages import stream_map as sql

MOST = 2000  # parts with a rate of their own
FEW = 100  # segments that are drawn by themselves; more share the rows of a grid
GRID = 40  # rows of the key space that segments share
ASKED = 8000  # times at which offsets are looked up for a grid
LINE = 128  # parts of the key space in which a position is looked at
PLACES = 500  # segments of which a line is made; of more, every so many-th
GROUPS = 20  # of which positions are drawn
MARKS = 120  # parts of the time in which changes of a kind are one mark
ROUNDING = 1e-6  # events that are left where some are added and taken away again
PART = 4  # pixels that a part is wide at least


@dataclass(frozen=True)
class Part:
    """A part of a time in which events came. `level`: the colour of its rate.

    A commit is spread over the time since the one before it, so `events` may have fractions.
    """

    since: datetime
    until: datetime
    events: float
    level: int


@dataclass(frozen=True)
class Area:
    """A segment, or a row of the key space that many share: then `segment` is null.

    `since`, `until` and `events` are of all its life, also outside of the times of the map; of a
    row, of these times.
    """

    segment: str | None
    segments: int
    key_low: float
    key_high: float
    since: datetime
    until: datetime
    events: float
    parts: list[Part]


@dataclass(frozen=True)
class Mark:
    """Changes of a kind, close to each other: `scale`, `policy`, `roll` or `cut`."""

    kind: str
    at: datetime
    number: int


@dataclass(frozen=True)
class Point:
    """Where a line is in a part of the key space."""

    key_low: float
    key_high: float
    at: datetime


@dataclass(frozen=True)
class Line:
    """The head of the stream (`reader_group` is null), or the position of a group."""

    reader_group: str | None
    points: list[Point]


@dataclass(frozen=True)
class KeyMap:
    """A stream from `since` to `until`, of what there is from `begins` to `ends`."""

    stream: str
    begins: datetime
    ends: datetime
    since: datetime
    until: datetime
    aggregated: bool
    areas: list[Area]
    marks: list[Mark]
    lines: list[Line]
    levels: list[Level]


def key_map(
    connection: Connection, stream: StreamName, since: int | None, until: int | None, width: int
) -> KeyMap:
    """Return the map of a stream between two times (None: all that there is), for a picture that is
    `width` pixels wide. Five statements. Segments that are too many share the rows of a grid.

    Raises NotFound for an unknown stream, and InvalidInput if there is nothing between the times.
    """
    found = sql.mapped_stream(connection, stream=str(stream))
    if found is None:
        raise no_such_stream(stream)
    id, last, first = found.stream_id, found.ends, found.begins
    begin = first if since is None else max(since, first)
    end = last if until is None else min(until, last)
    if begin >= end:
        raise InvalidInput(
            "time_invalid",
            f"{stream} has nothing between these times: give a time to begin with that is before "
            f"the one to end with, between {say_time(first)} and {say_time(last)} UTC.",
        )
    rows = sql.lived(
        connection, id=id, begins=first, ends=last, since=begin, until=end, most=FEW + 1
    )  # one more than are drawn: then there are many
    if len(rows) <= FEW:
        length = sum(min(one.ends, end) - max(one.begins, begin) for one in rows)
        # A segment is in two parts more than it is long, at most.
        parts = (MOST - 2 * len(rows)) * (end - begin) // max(length, 1)
        apart = _width(begin, end, min(parts, width // PART))
        offsets = sql.offsets(
            connection,
            id=id,
            width=apart,
            segments=[one.segment_id for one in rows],
            firsts=[begin + apart * max(-(-(one.begins - begin) // apart), 0) for one in rows],
            ends=[min(one.ends, end) for one in rows],
        )
        levels, areas = _segments(rows, offsets, begin, end, apart)
    else:
        parts = min(MOST // GRID, width // PART, max(ASKED // max(found.active, 1), 4))
        apart = _width(begin, end, parts)
        times = [*range(begin, end, apart), end]
        cells = sql.cells(connection, id=id, times=times, parts=len(times) - 1, grid=GRID)
        levels, areas = _grid(cells, begin, end, apart)
    changes = sql.changes(
        connection, id=id, since=begin, until=end, apart=_width(begin, end, MARKS)
    )
    places = sql.places(
        connection, id=id, begins=first, ends=last, segments=PLACES, groups=GROUPS, line=LINE
    )
    return KeyMap(
        stream=str(stream),
        begins=clock_time(first),
        ends=clock_time(last),
        since=clock_time(begin),
        until=clock_time(end),
        aggregated=len(rows) > FEW,
        areas=areas,
        marks=[Mark(one.kind, clock_time(one.clock), one.number) for one in changes],
        lines=_lines(places),
        levels=levels.legend,
    )


def _width(begin: int, end: int, parts: int) -> int:
    return max(-(-(end - begin) // parts), 1)


def _segments(
    rows: Sequence[sql.Lived], offsets: Sequence[sql.Offsets], begin: int, end: int, apart: int
) -> tuple[Levels, list[Area]]:
    """Return the colours, and an area for each segment. Its events are spread over the time since
    what is known before them."""
    known = {at: list(found) for at, found in groupby(offsets, key=lambda one: one.segment_id)}
    rates: dict[int, list[Slice]] = {}
    for one in rows:
        before, had, commits = one.begins, 0, []
        for seen in known.get(one.segment_id, ()):
            commits.append(Commit(seen.clock, min(before, seen.clock), seen.events - had))
            before, had = seen.clock, seen.events
        rates[one.segment_id] = slices_of(commits, begin, apart, end)
    levels = Levels([part.rate for parts in rates.values() for part in parts])
    return levels, [
        Area(
            segment_name(one.segment_id), 1, one.key_low, one.key_high, clock_time(one.begins),
            clock_time(one.ends), one.events, _parts(rates[one.segment_id], levels),
        )
        for one in sorted(rows, key=lambda one: (one.key_low, one.segment_id))
    ]  # fmt: skip


def _grid(
    cells: Sequence[sql.Cells], begin: int, end: int, apart: int
) -> tuple[Levels, list[Area]]:
    """Return the colours, and an area for each row of the grid."""
    rates: dict[int, list[Slice]] = {}
    segments = dict.fromkeys((one.at for one in cells), 0)
    for one in cells:
        low = begin + one.part * apart
        high = min(low + apart, end)
        segments[one.at] += one.segments
        if one.events > ROUNDING:
            rate = one.events * SECOND / (high - low)
            rates.setdefault(one.at, []).append(Slice(low, high, rate))
    levels = Levels([part.rate for parts in rates.values() for part in parts])
    areas = []
    for at, number in segments.items():
        parts = _parts(rates.get(at, []), levels)
        came = round(sum(one.events for one in parts), 3)
        keys = (at / GRID, (at + 1) / GRID)
        areas.append(
            Area(None, number, *keys, clock_time(begin), clock_time(end), came, parts)
        )  # fmt: skip
    return levels, areas


def _parts(rates: Sequence[Slice], levels: Levels) -> list[Part]:
    return [
        Part(
            clock_time(low), clock_time(high), round(rate * (high - low) / SECOND, 6),
            levels.of(rate),
        )
        for low, high, rate in rates
    ]  # fmt: skip


def _lines(places: Sequence[sql.Places]) -> list[Line]:
    """Return the lines; neighbours at the same time are one point."""
    lines = []
    for name, parts in groupby(places, key=lambda one: one.name):
        points: list[Point] = []
        for one in parts:
            low, high, at = one.part / LINE, (one.part + 1) / LINE, clock_time(one.clock)
            if points and (points[-1].at, points[-1].key_high) == (at, low):
                points[-1] = Point(points[-1].key_low, high, at)
            else:
                points.append(Point(low, high, at))
        lines.append(Line(name or None, points))
    return lines
