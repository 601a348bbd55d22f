"""Plan a batch: what one reader reads next, within its budget and its limits, in its order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.queries import Cut
from weir.model.assignment import unread_events
from weir.model.bounds import Bound, Graph, bounds_of_stream
from weir.model.group_configuration import GroupConfiguration
from weir.model.segment import Segment
from weir.model.stream_cut import StreamCut
from weir.reader_groups.batches.budget import ALL, Fit, Unit, fit
from weir.reader_groups.batches.clock_limits import clock_limits, ends_at
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.positions import Key, Position

FIRST_PART = 8  # the part of the budget for a reader's first batch, if others share a backlog


@dataclass(frozen=True)
class Wanted:
    """What a reader asks for. `until`: by stream id, the cut to stop at. `closed`: the clock at
    which the streams of an aligned group were closed; `until` then has their tails at it. `ends`:
    as `until`, the ends of the group, which are the same for all its readers. `first`: it is the
    reader's first batch, so nobody knows how fast it is."""

    reading: Reading
    until: Mapping[int, Cut] = field(default_factory=dict)
    closed: int | None = None
    ends: Mapping[int, Cut] = field(default_factory=dict)
    first: bool = False


@dataclass(frozen=True)
class Planned:
    """The bounds of a batch and their bytes. `up_to`: of an aligned group, the clock up to which it
    has everything."""

    bounds: list[Bound]
    bytes: int
    up_to: int | None = None


def plan(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: Mapping[int, Graph],
    mine: Collection[Key],
    readers: int,
    wanted: Wanted,
) -> Planned:
    """Return what a reader that owns the positions `mine` reads next, in a group that `readers`
    readers share."""
    shares: dict[int, int] = {}
    if readers > 1:
        for stream_id, graph in graphs.items():
            unread = unread_events(present(positions, stream_id), graph)
            shares[stream_id] = ceil(sum(unread.values()) / readers)
    until = wanted.until
    stops = {s: cut_to_stop_at(connection, s, until[s], graphs[s]) for s in graphs if s in until}
    theirs = [p for p in positions if p.key not in mine]

    def bounds_within(fit: Fit) -> list[Bound]:
        bounds = []
        for stream_id, graph in graphs.items():
            bounds += bounds_of_stream(
                stream_id,
                present([p for p in positions if p.key in mine], stream_id),
                [p.segment for p in theirs if p.stream_id == stream_id],
                graph,
                stops.get(stream_id),
                partial(fit.end, stream_id),
                shares.get(stream_id),
            )
        return bounds

    readable = bounds_within(ALL)
    limits = clock_limits(connection, group, positions, graphs, mine, stops, wanted.closed)
    if limits:
        readable = bounds_within(ends_at(connection, readable, limits))
    unit = _unit(group.configuration, wanted)
    within = fit(connection, readable, wanted.reading.budget, unit)
    if wanted.first and readers > 1 and within.ends is not None:
        within = fit(connection, readable, wanted.reading.budget.part(FIRST_PART), unit)
    up_to = None
    if wanted.closed is not None:
        up_to = min(limits.values()) if within.clock is None else within.clock
    return Planned(readable if within.ends is None else bounds_within(within), within.bytes, up_to)


def _unit(configuration: GroupConfiguration, wanted: Wanted) -> Unit:
    if configuration.aligned:
        return "commit"
    return "run" if wanted.reading.order == "stream" else "file"


def present(positions: Sequence[Position], stream_id: int) -> dict[Segment, int]:
    """Return the next offset by segment, for the positions in a stream that can be read."""
    return {
        p.segment: p.next_offset
        for p in positions
        if p.stream_id == stream_id and p.next_offset is not None
    }


def cut_to_stop_at(
    connection: Connection, stream_id: int, until: Cut, graph: Graph
) -> StreamCut | None:
    """Return the cut to stop at, or None if it lies beyond the whole graph, as in most of a run."""
    offsets = [until.get(segment.name) for segment in graph.states]
    ends = [state.end for state in graph.states.values()]
    if all(isinstance(o, int) and o >= end for o, end in zip(offsets, ends, strict=True)):
        return None
    return load_cuts(connection, stream_id, until)[0]
