"""Read the positions of a group, and move them when a batch is committed."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.model.bounds import Bound, Graph, SegmentState
from weir.model.segment import Segment
from weir.model.stream_cut import ready
from weir.queries.reader_groups import positions as sql
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.starting_points import Cuts

Key = tuple[int, int]  # stream and segment id
MOST_SEGMENTS_AHEAD = 20_000  # the most that one batch looks at, besides direct successors


class Position(NamedTuple):
    """The position of a group in a segment; `next_offset` is None while predecessors are unread."""

    stream_id: int
    state: SegmentState
    next_offset: int | None
    reader_id: str | None
    batch_id: int | None

    @property
    def segment(self) -> Segment:
        """The segment."""
        return self.state.segment

    @property
    def key(self) -> Key:
        """The ids of the stream and of the segment, which are unique in the group."""
        return self.stream_id, self.state.segment.segment_id


def read_positions(connection: Connection, group: LockedGroup) -> list[Position]:
    """Return all positions of a group, ordered by stream and segment."""
    rows = sql.positions(connection, group_id=group.group_id)
    return [
        Position(row.stream_id, _state(row), row.next_offset, row.reader_id, row.batch_id)
        for row in rows
    ]


def read_graphs(
    connection: Connection, group: LockedGroup, positions: Sequence[Position]
) -> dict[int, Graph]:
    """Return by stream id the segments at the positions and those that follow them, up to a limit.

    All direct successors are included, so that a group can always advance. Segments that the group
    has passed are not, however old a position's segment is: the cost depends on what is unread.
    """
    states: dict[int, list[SegmentState]] = {}
    for position in positions:
        states.setdefault(position.stream_id, []).append(position.state)
    if any(position.state.sealed_epoch is not None for position in positions):
        rows = sql.ahead(connection, group_id=group.group_id, most=MOST_SEGMENTS_AHEAD)
        for row in rows:
            states[row.stream_id].append(_state(row))
    return {stream_id: Graph(found) for stream_id, found in states.items()}


def read_lags(connection: Connection, group: LockedGroup) -> dict[Key, int]:
    """Return by position how far it is behind, in microseconds: the stream's last clock minus the
    clock of the first unread event, or of the scale that sealed the segment if none is unread."""
    rows = sql.lags(connection, group_id=group.group_id)
    return {(row.stream_id, row.segment_id): row.lag for row in rows}


def read_rates(connection: Connection, group: LockedGroup) -> dict[str, float]:
    """Return the events per second of each reader whose recent batches say how fast it is."""
    rows = sql.rates(connection, group=group.name)
    return {row.reader_id: row.rate for row in rows}


def advance(
    connection: Connection, group: LockedGroup, bounds: Sequence[Bound], reader_id: str
) -> None:
    """Move the positions to the ends of `bounds`, and replace completed segments by successors.

    A successor can be read when all its predecessors are passed, that is, when no position with a
    smaller segment id overlaps it.
    """
    done = [bound for bound in bounds if bound.completes]
    moved = {(b.stream_id, b.segment_id): b.end for b in bounds if not b.completes}
    entered = _entered(connection, group, done) if done else {}
    went_on = {key: end for key, end in moved.items() if key not in entered}
    sql.advance(
        connection,
        group_id=group.group_id,
        reader_id=reader_id,
        done_streams=[bound.stream_id for bound in done],
        done_segments=[bound.segment_id for bound in done],
        new_streams=[stream_id for stream_id, _ in entered],
        new_segments=[segment_id for _, segment_id in entered],
        new_offsets=[moved.get(key, offset) for key, offset in entered.items()],
        new_mine=[key in moved for key in entered],
        streams=[stream_id for stream_id, _ in went_on],
        segments=[segment_id for _, segment_id in went_on],
        ends=list(went_on.values()),
    )


def _entered(
    connection: Connection, group: LockedGroup, done: Sequence[Bound]
) -> dict[Key, int | None]:
    """Return the segments that take the place of completed ones, with offset 0, or None for one
    that waits for another predecessor.

    The positions are then those that are not completed, and the successors of those that are.
    """
    positions = read_positions(connection, group)
    created = sql.created(
        connection,
        streams=[bound.stream_id for bound in done],
        segments=[bound.segment_id for bound in done],
    )
    entered: dict[Key, int | None] = {}
    for stream_id in {bound.stream_id for bound in done}:
        here = [p for p in positions if p.stream_id == stream_id]
        graph = Graph(
            [p.state for p in here] + [_state(r) for r in created if r.stream_id == stream_id]
        )
        by_id = {segment.segment_id: segment for segment in graph.states}
        gone = {by_id[bound.segment_id] for bound in done if bound.stream_id == stream_id}
        following = {next_ for segment in gone for next_ in graph.successors(segment)}
        known = {p.segment for p in here}
        listed = (known | following) - gone
        first = ready(listed)
        waiting = {p.segment for p in here if p.next_offset is None}
        for segment in (listed - known) | (waiting & first):
            entered[stream_id, segment.segment_id] = 0 if segment in first else None
    return entered


def _state(row: sql.PositionRow | sql.Ahead) -> SegmentState:
    segment = Segment(row.segment_id, row.key_low, row.key_high)
    return SegmentState(segment, row.ends_at, row.sealed_epoch)


def positions_of(
    connection: Connection, group: LockedGroup, streams: Sequence[LockedStream]
) -> Cuts:
    """Return the position of a group in each of the streams, as a cut."""
    rows = sql.cuts(
        connection, group_id=group.group_id, ids=[stream.stream_id for stream in streams]
    )
    return {row.stream_id: load_cuts(connection, row.stream_id, row.cut)[0] for row in rows}


def place_at(connection: Connection, group_id: int, cuts: Cuts) -> None:
    """Move a locked group that has no readers to cuts of its streams, and record its activity."""
    given = json.dumps([{"stream_id": s, "cut": c.to_json()} for s, c in cuts.items()])
    sql.leave(connection, group_id=group_id, ids=sorted(cuts), cuts=given)
    sql.place(connection, group_id=group_id, cuts=given)
