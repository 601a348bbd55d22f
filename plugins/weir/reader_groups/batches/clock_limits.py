"""Limit what one batch reads by the clock: to a closed moment, to what lies in sight, and to a time
after the oldest event that other readers have not read."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection

from weir.model.bounds import Bound, Graph, readable_until
from weir.model.clock import SECOND
from weir.model.stream_cut import StreamCut
from weir.queries.reader_groups.batches import clock_limits as sql
from weir.reader_groups import positions as at
from weir.reader_groups.batches.budget import Fit
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.positions import Key, Position


def clock_limits(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: Mapping[int, Graph],
    mine: Collection[Key],
    stops: Mapping[int, StreamCut | None],
    closed: int | None,
) -> dict[int, int]:
    """Return by stream id the last clock that a batch may read, for the streams that have a limit.

    `mine`: the positions that the batch may read from. `stops`: by stream id the cut to stop at; a
    position that has nothing to read before it holds nobody back. `closed`: of an aligned group,
    the clock at which its streams were closed; the result then is one clock for all streams.
    """
    limits = _in_sight(connection, graphs)
    shared = []
    if closed is not None:
        shared += [closed, *limits.values()]
    elif group.configuration.max_ahead is not None:
        others = {
            p.key for p in positions if p.key not in mine and _has_more(p, stops.get(p.stream_id))
        }
        slowest = _oldest_unread(connection, group, others)
        if slowest is not None:
            shared.append(slowest + group.configuration.max_ahead * SECOND)
    if shared:
        common = min(shared)
        limits = {s: min(common, limits.get(s, common)) for s in graphs}
    return limits


def ends_at(connection: Connection, wanted: Sequence[Bound], limits: Mapping[int, int]) -> Fit:
    """Return how far each segment of `wanted` can be read up to the last clocks of the streams."""
    limited = [bound for bound in wanted if bound.stream_id in limits]
    ends = {(b.stream_id, b.segment_id): b.end for b in wanted if b.stream_id not in limits}
    rows = sql.ends_at(
        connection,
        streams=[bound.stream_id for bound in limited],
        segments=[bound.segment_id for bound in limited],
        clocks=[limits[bound.stream_id] for bound in limited],
    )
    spans = {(b.stream_id, b.segment_id): (b.start, b.end) for b in limited}
    for stream_id, segment_id, end_at_clock in rows:
        start, end = spans[stream_id, segment_id]
        ends[stream_id, segment_id] = max(start, min(end, end_at_clock))
    return Fit(ends, 0)


def _has_more(position: Position, stop: StreamCut | None) -> bool:
    """Return whether anything is to be read at a position or after it, up to the cut `stop`."""
    if position.next_offset is None or stop is None:
        return position.next_offset is not None
    state = position.state
    return position.next_offset < readable_until(stop, state) or not (
        state.segment in stop.offsets or stop.contains(state.segment)
    )


def _oldest_unread(
    connection: Connection, group: LockedGroup, others: Collection[Key]
) -> int | None:
    """Return the clock of the oldest unread event at positions that can be read; None if all is
    read there."""
    if not others:
        return None
    rows = sql.oldest_unread(connection, group_id=group.group_id)
    return min(
        (row.clock for row in rows if (row.stream_id, row.segment_id) in others), default=None
    )


def _in_sight(connection: Connection, graphs: Mapping[int, Graph]) -> dict[int, int]:
    """Return by stream id the clock up to which all events lie in segments of its graph, for the
    graphs that do not reach to the tail.

    What follows a segment is later than the epoch that sealed it.
    """
    ends = {
        stream_id: min(epochs)
        for stream_id, graph in graphs.items()
        if len(graph.states) > at.MOST_SEGMENTS_AHEAD
        and (epochs := [
            state.sealed_epoch
            for segment, state in graph.states.items()
            if state.sealed_epoch is not None and not graph.has_all_successors(segment)
        ])
    }  # fmt: skip
    if not ends:
        return {}
    rows = sql.epochs(connection, streams=list(ends), epochs=list(ends.values()))
    return {row.stream_id: row.created_at for row in rows}
