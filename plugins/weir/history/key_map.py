"""A stream as a map: its key space over time, in a bounded number of parts.

The number of statements does not depend on the stream, and what they look at not on its commits:
the events of a part are the difference of two offsets, each found by its time. Sums per hour would
make appends dearer, for pictures that nobody may look at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.locks import no_such_stream
from weir.errors import InvalidInput, counted
from weir.history.scene import HeadPart, Mark, Position, SegmentDrawn, SegmentPanel, Slice
from weir.history.slices import slices_of
from weir.history.time_axis import say_time
from weir.model.clock import SECOND
from weir.model.names import StreamName
from weir.model.segment import segment_name
from weir.model.segment_rates import Commit

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

_STREAM = """SELECT s.stream_id, coalesce(s.sealed_clock, (now_clock() / 60000000 + 1) * 60000000)
        AS ends,
    (SELECT min(created_at) FROM epoch e WHERE e.stream_id = s.stream_id) AS begins,
    (SELECT count(*) FROM segment_tail t WHERE t.stream_id = s.stream_id) AS active
FROM stream s WHERE s.stream_name = :stream AND s.state <> 'deleted'"""
# One more than are drawn: then there are many. One whose epoch is pruned is as old as the stream.
_SEGMENTS = f"""SELECT g.segment_id, g.key_low, g.key_high,
    coalesce((SELECT c.created_at FROM epoch c
              WHERE c.stream_id = :id AND c.epoch = g.creation_epoch), :begins) AS begins,
    coalesce(g.sealed_clock, :ends) AS ends,
    coalesce(g.events, (SELECT t.tail_offset FROM segment_tail t
                        WHERE t.stream_id = :id AND t.segment_id = g.segment_id)) AS events
FROM (SELECT * FROM segment WHERE stream_id = :id
          AND creation_epoch <= (SELECT epoch_at(:id, :until - 1))
          AND (sealed_epoch IS NULL OR sealed_epoch > (SELECT epoch_at(:id, :since)))
      LIMIT {FEW + 1}) g"""  # noqa: S608 - a constant
# What a segment had got at each time of its life, and after the first commit after all of these.
_OFFSETS = """WITH asked AS MATERIALIZED (
    SELECT a.segment_id, p.last, c.clock, c.start_offset + c.events AS events
    FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
        AS a (segment_id, first, ends)
    CROSS JOIN LATERAL (
        SELECT at, false AS last FROM generate_series(a.first, a.ends - 1, :width) AS at
        UNION ALL SELECT a.ends, true) p
    LEFT JOIN LATERAL commit_by(:id, a.segment_id, p.at) c ON true)
SELECT segment_id, clock, events FROM asked WHERE clock IS NOT NULL
UNION
SELECT a.segment_id, n.clock, n.start_offset + n.events
FROM asked a
CROSS JOIN LATERAL commit_from(:id, a.segment_id, coalesce(a.events, 0)) f
CROSS JOIN LATERAL commit_by(:id, a.segment_id, f.clock) n
WHERE a.last
ORDER BY 1, 2"""
# A segment is there from one of the times to before another one, or only between two of them. A
# part has what its segments had at its end, less what they had at its begin.
_GRID = f"""WITH bound AS MATERIALIZED (
    SELECT array_agg(epoch_at(:id, b.at) ORDER BY b.at) AS epochs,
        array_agg(b.at ORDER BY b.at) AS times
    FROM unnest(CAST(:times AS bigint[])) AS b (at)),
lived AS MATERIALIZED (
    SELECT g.segment_id, g.key_low, g.key_high, g.events,
        width_bucket(g.creation_epoch - 1, b.epochs) AS first,
        coalesce(width_bucket(g.sealed_epoch - 1, b.epochs), :parts + 1) AS gone
    FROM segment g CROSS JOIN bound b
    WHERE g.stream_id = :id AND (g.sealed_epoch IS NULL OR g.sealed_epoch > b.epochs[1])
        AND g.creation_epoch <= b.epochs[:parts + 1]),
came AS (
    SELECT key_low, key_high, gone - 1 AS part, count(*) AS segments, sum(events) AS events
    FROM lived WHERE gone <= :parts GROUP BY 1, 2, 3
    UNION ALL
    SELECT l.key_low, l.key_high, p.part, p.last, p.sign * coalesce(c.start_offset + c.events, 0)
    FROM lived l CROSS JOIN bound b
    CROSS JOIN LATERAL generate_series(l.first, least(l.gone - 1, :parts)) AS i
    LEFT JOIN LATERAL commit_by(:id, l.segment_id, b.times[i + 1]) c ON true
    CROSS JOIN LATERAL (VALUES (i - 1, 1, (i = :parts)::int), (i, -1, 0)) AS p (part, sign, last)
    WHERE l.first < l.gone AND p.part BETWEEN 0 AND :parts - 1)
SELECT r.at, c.part, sum(c.segments) AS segments,
    sum(c.events * (least((r.at + 1.0) / {GRID}, c.key_high)
        - greatest(r.at::float / {GRID}, c.key_low)) / (c.key_high - c.key_low)) AS events
FROM came c CROSS JOIN LATERAL generate_series(
    floor(c.key_low * {GRID})::int, ceil(c.key_high * {GRID})::int - 1) AS r (at)
GROUP BY r.at, c.part ORDER BY 1, 2"""  # noqa: S608 - constants
_MARKS = """SELECT kind, min(clock) AS clock, count(*) AS number FROM (
    SELECT CASE WHEN cause IN ('roll', 'policy') THEN cause ELSE 'scale' END AS kind,
        created_at AS clock
    FROM epoch WHERE stream_id = :id AND cause <> 'create' AND created_at BETWEEN :since AND :until
    UNION ALL
    SELECT 'cut', time_clock(recorded_at) FROM stream_cut
    WHERE stream_id = :id AND recorded_at BETWEEN clock_time(:since) AND clock_time(:until)) m
GROUP BY kind, (clock - :since) / :apart ORDER BY 2, 1"""
# When the head ('') and the groups have come to where they are, in each part of the key space. What
# a future segment shares with a present one is passed only up to the present one.
_LINES = f"""WITH every AS MATERIALIZED (
    SELECT 1 + count(*) / {PLACES} AS nth FROM segment_tail WHERE stream_id = :id),
entry AS (
    SELECT '' AS name, e.segment_id, e.event_offset
    FROM stream s CROSS JOIN LATERAL cut_entries(s.head) e WHERE s.stream_id = :id
    UNION ALL
    SELECT g.name, p.segment_id, p.next_offset
    FROM (SELECT g.group_id, g.name FROM reader_group g JOIN reader_group_stream USING (group_id)
          WHERE stream_id = :id ORDER BY g.name LIMIT {GROUPS}) g
    JOIN reader_group_segment p ON p.group_id = g.group_id AND p.stream_id = :id),
place AS MATERIALIZED (
    SELECT e.name, g.key_low, g.key_high, e.event_offset IS NOT NULL AS present, CASE
        WHEN coalesce(e.event_offset, 0) = 0 THEN coalesce(c.created_at, :begins)
        WHEN e.event_offset >= coalesce(g.events, t.tail_offset)
        THEN coalesce(g.sealed_clock, :ends)
        ELSE coalesce(
            (SELECT i.clock FROM commit_at(:id, e.segment_id, e.event_offset - 1) i),
            (SELECT i.clock FROM commit_from(:id, e.segment_id, e.event_offset) i),
            c.created_at, :begins)
        END AS clock
    FROM entry e CROSS JOIN every
    JOIN segment g ON g.stream_id = :id AND g.segment_id = e.segment_id
    LEFT JOIN segment_tail t ON t.stream_id = :id AND t.segment_id = e.segment_id
    LEFT JOIN epoch c ON c.stream_id = :id AND c.epoch = g.creation_epoch
    WHERE e.segment_id % every.nth = 0)
SELECT name, part, coalesce(min(clock) FILTER (WHERE present), min(clock)) AS clock
FROM place CROSS JOIN LATERAL generate_series(
    floor(key_low * {LINE})::int, ceil(key_high * {LINE})::int - 1) AS part
GROUP BY name, part ORDER BY name, part"""  # noqa: S608 - constants


class Area(NamedTuple):
    """A segment, or a row of the key space that `segments` share: then `segment` is None.

    `begin`, `end` and `events` are of all its life, also outside of the times of the map; of a row,
    of these times.
    """

    segment: str | None
    segments: int
    key_low: float
    key_high: float
    begin: int
    end: int
    events: float
    parts: Sequence[Slice]


class Change(NamedTuple):
    """Changes of a kind, close to each other: `scale`, `policy`, `roll` or `cut`."""

    kind: str
    clock: int
    number: int


class Point(NamedTuple):
    """Where a line is in a part of the key space."""

    key_low: float
    key_high: float
    clock: int


class Line(NamedTuple):
    """The head of the stream (`reader_group` is None), or the position of a group."""

    reader_group: str | None
    points: Sequence[Point]


@dataclass(frozen=True)
class KeyMap:
    """A stream from `begin` to `end`, of what there is from `first` to `last`; times are in
    microseconds since 1970."""

    stream: str
    stream_id: int
    first: int
    last: int
    begin: int
    end: int
    areas: Sequence[Area]
    changes: Sequence[Change]
    lines: Sequence[Line]

    def panel(self, heading: str) -> SegmentPanel:
        """Return the map for a picture."""
        segments = [
            SegmentDrawn(
                one.segment or counted(one.segments, "segment"), one.key_low, one.key_high,
                one.begin, one.end if one.end < self.last else None, round(one.events),
                tuple(one.parts),
            )
            for one in self.areas
        ]  # fmt: skip
        marks = [
            Mark(one.clock, one.kind, "" if one.number == 1 else str(one.number))
            for one in self.changes
        ]
        head, *groups = [[HeadPart(*point) for point in one.points] for one in self.lines]
        names = [str(one.reader_group) for one in self.lines[1:]]
        positions = [Position(*one) for one in zip(names, groups, strict=True)]
        return SegmentPanel(heading, segments, marks, head, positions)


def key_map(
    connection: Connection, stream: StreamName, since: int | None, until: int | None, width: int
) -> KeyMap:
    """Return the map of a stream between two times (None: all that there is), for a picture that is
    `width` pixels wide. Five statements. Segments that are too many share the rows of a grid.

    Raises NotFound for an unknown stream, and InvalidInput if there is nothing between the times.
    """

    def rows(statement: str, **given: Any) -> list[Any]:
        return list(connection.execute(text(statement), given))

    found = rows(_STREAM, stream=str(stream))
    if not found:
        raise no_such_stream(stream)
    [(stream_id, last, first, active)] = found
    begin = first if since is None else max(since, first)
    end = last if until is None else min(until, last)
    if begin >= end:
        raise InvalidInput(
            "no_history",
            f"{stream} has nothing between these times: give a time to begin with that is before "
            f"the one to end with, between {say_time(first)} and {say_time(last)} UTC.",
        )
    lived = rows(_SEGMENTS, id=stream_id, begins=first, ends=last, since=begin, until=end)
    if len(lived) <= FEW:
        length = sum(min(one.ends, end) - max(one.begins, begin) for one in lived)
        # A segment is in two parts more than it is long, at most.
        parts = (MOST - 2 * len(lived)) * (end - begin) // max(length, 1)
        apart = _width(begin, end, min(parts, width // PART))
        asked = {
            "segments": [one.segment_id for one in lived],
            "firsts": [begin + apart * max(-(-(one.begins - begin) // apart), 0) for one in lived],
            "ends": [min(one.ends, end) for one in lived],
        }
        offsets = rows(_OFFSETS, id=stream_id, width=apart, **asked)
        areas = _segments(lived, offsets, begin, end, apart)
    else:
        parts = min(MOST // GRID, width // PART, max(ASKED // max(active, 1), 4))
        apart = _width(begin, end, parts)
        times = [*range(begin, end, apart), end]
        found = rows(_GRID, id=stream_id, times=times, parts=len(times) - 1)
        areas = _grid(found, begin, end, apart)
    return KeyMap(
        str(stream), stream_id, first, last, begin, end, areas,
        [Change(*one) for one in rows(_MARKS, id=stream_id, since=begin, until=end,
                                      apart=_width(begin, end, MARKS))],
        _lines(rows(_LINES, id=stream_id, begins=first, ends=last)),
    )  # fmt: skip


def _width(begin: int, end: int, parts: int) -> int:
    return max(-(-(end - begin) // parts), 1)


def _segments(
    lived: Sequence[Any], offsets: Sequence[Any], begin: int, end: int, apart: int
) -> list[Area]:
    """Return an area for each segment. Its events are spread over the time since what is known
    before them."""
    known = {at: list(found) for at, found in groupby(offsets, key=lambda one: one.segment_id)}
    areas = []
    for one in sorted(lived, key=lambda one: (one.key_low, one.segment_id)):
        before, had, commits = one.begins, 0, []
        for _, clock, events in known.get(one.segment_id, ()):
            commits.append(Commit(clock, min(before, clock), events - had))
            before, had = clock, events
        areas.append(
            Area(
                segment_name(one.segment_id), 1, one.key_low, one.key_high, one.begins, one.ends,
                one.events, slices_of(commits, begin, apart, end),
            )
        )  # fmt: skip
    return areas


def _grid(found: Sequence[Any], begin: int, end: int, apart: int) -> list[Area]:
    """Return an area for each row of the grid."""
    areas = []
    for at, cells in groupby(found, key=lambda one: one.at):
        parts, segments, came = [], 0, 0.0
        for _, part, number, events in cells:
            low = begin + part * apart
            high, segments, events = min(low + apart, end), segments + int(number), float(events)
            if events > ROUNDING:
                parts.append(Slice(low, high, events * SECOND / (high - low)))
                came += events
        areas.append(Area(None, segments, at / GRID, (at + 1) / GRID, begin, end, came, parts))
    return areas


def _lines(found: Sequence[Any]) -> list[Line]:
    """Return the lines; neighbours at the same time are one point."""
    lines = []
    for name, parts in groupby(found, key=lambda one: one.name):
        points: list[Point] = []
        for _, part, clock in parts:
            low, high = part / LINE, (part + 1) / LINE
            if points and (points[-1].clock, points[-1].key_high) == (clock, low):
                points[-1] = points[-1]._replace(key_high=high)
            else:
                points.append(Point(low, high, clock))
        lines.append(Line(name or None, points))
    return lines
