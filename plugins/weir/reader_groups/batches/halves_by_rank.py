"""Divide a failed batch into halves of which the first was written before the second."""

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from weir.controller.read_plan import FileSlice, slices_by_commit
from weir.database.connection import Database
from weir.model.bisection import halve
from weir.model.bounds import Bound
from weir.model.segment import Segment
from weir.queries.reader_groups.batches import halves_by_rank as sql
from weir.reader_groups.positions import Key

# Returns how many rows of each slice belong to the half with the smaller ranks. The slices are the
# files of one rank run; their ranks are in the files.
Ranks = Callable[[Sequence[FileSlice]], list[int]]
Slice = tuple[int, FileSlice]  # with the id of its stream


def halve_by_rank(
    database: Database, bounds: Sequence[Bound], ranks: Ranks
) -> tuple[list[Bound], list[Bound]]:
    """Return the bounds of the events of a batch that were written first, about half of them, and
    the bounds of the rest.

    The cut is between two rank runs (files whose ranks overlap), which the metadata shows without
    reading a file. A batch of one rank run is cut within it, where `ranks` says. Of several
    streams, the order is that of their clocks. The bounds must hold at least two events.
    """
    slices, segments = database.snapshot(lambda c: (_slices(c, bounds), _segments(c, bounds)))
    runs = _runs(slices)
    ends = _first_runs(runs) if len(runs) > 1 else _within(slices, ranks)
    first, rest = _divided(bounds, ends, segments)
    if any(b.end > b.start for b in first) and any(b.end > b.start for b in rest):
        return first, rest
    return halve(bounds)  # the events were truncated, or two files of a segment interleave


def _slices(connection: Connection, bounds: Sequence[Bound]) -> list[Slice]:
    here = [bound for bound in bounds if bound.end > bound.start]
    return [
        (stream_id, one)
        for stream_id in sorted({bound.stream_id for bound in here})
        for one in slices_by_commit(
            connection,
            stream_id,
            [(b.segment_id, b.start, b.end) for b in here if b.stream_id == stream_id],
        )
    ]


def _runs(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Return the slices as rank runs in write order."""
    runs: list[list[Slice]] = []
    last = (-1, -1, -1)
    for stream_id, one in sorted(slices, key=lambda s: (s[1].first_clock, s[0], s[1].first_seq)):
        if (one.first_clock, stream_id, one.first_seq) > last:
            runs.append([])
        runs[-1].append((stream_id, one))
        last = max(last, (one.first_clock, stream_id, one.last_seq))
    return runs


def _first_runs(runs: Sequence[Sequence[Slice]]) -> dict[Key, int]:
    """Return by segment where the first rank runs end, with about half of the events, not all."""
    left = sum(_rows(one) for run in runs for _, one in run) // 2
    ends: dict[Key, int] = {}
    for i, run in enumerate(runs[:-1]):
        size = sum(_rows(one) for _, one in run)
        # The first half is closer to half of the events without this run.
        if i > 0 and size > 2 * left:
            break
        left -= size
        for stream_id, one in run:  # by rank: where files were compacted, not by offset
            key = stream_id, one.segment_id
            ends[key] = max(ends.get(key, 0), one.start_offset + one.end_row)
    return ends


def _within(slices: Sequence[Slice], ranks: Ranks) -> dict[Key, int]:
    """Return by segment where the first half of one rank run ends."""
    ends: dict[Key, int] = {}
    ordered = sorted(slices, key=lambda s: (s[0], s[1].segment_id, s[1].start_offset))
    short: set[Key] = set()  # segments of which an earlier file is not in the first half as a whole
    for (stream_id, one), rows in zip(ordered, ranks([s for _, s in ordered]), strict=True):
        key = stream_id, one.segment_id
        if key not in short:
            ends[key] = one.start_offset + one.first_row + rows
        if rows < _rows(one):
            short.add(key)
    return ends


def _rows(one: FileSlice) -> int:
    return one.end_row - one.first_row  # also those without an event: only bounds count


def _divided(
    bounds: Sequence[Bound], ends: Mapping[Key, int], segments: Mapping[Key, Segment]
) -> tuple[list[Bound], list[Bound]]:
    """Divide bounds at `ends`. A segment is completed in the first half only if everything before
    it is."""
    first, rest = [], []
    unfinished: list[tuple[int, Segment]] = []
    for bound in bounds:
        key = bound.stream_id, bound.segment_id
        segment = segments[key]
        waits = any(
            stream_id == bound.stream_id and before.overlaps(segment)
            for stream_id, before in unfinished
        )
        end = bound.start if waits else min(bound.end, max(bound.start, ends.get(key, bound.start)))
        if end == bound.end and not waits:
            first.append(bound)
            continue
        unfinished.append((bound.stream_id, segment))
        if end > bound.start:
            first.append(bound._replace(end=end, completes=False))
        rest.append(bound._replace(start=end))
    return first, rest


def _segments(connection: Connection, bounds: Sequence[Bound]) -> dict[Key, Segment]:
    rows = sql.segments_of(
        connection, streams=[b.stream_id for b in bounds], segments=[b.segment_id for b in bounds]
    )
    return {(row[0], row[1]): Segment(row[1], row[2], row[3]) for row in rows}
