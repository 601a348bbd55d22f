"""The bounds of a batch. Pure: what a reader may read next, given its positions and the graph.

A batch runs on through a sealed segment into a successor when every predecessor of it that the
group has not passed is read to its end in the same batch (the merge barrier otherwise).
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from weir.key_space import KeyRange, covers
from weir.segment import Segment, segment_id
from weir.stream_cut import FUTURE, StreamCut

K = TypeVar("K")


@dataclass(frozen=True)
class SegmentState:
    """A segment as it is now: its end is its tail, or its final size once it is sealed."""

    segment: Segment
    end: int
    sealed_epoch: int | None


@dataclass(frozen=True)
class Bound:
    """Read a segment from one offset up to another (exclusive)."""

    stream_id: int
    segment_id: int
    start: int
    end: int
    completes: bool  # the segment is sealed, `end` is its end, and its successors are known

    def json(self) -> dict[str, int | bool]:
        """As it is recorded in the batch."""
        return {"stream": self.stream_id, "segment": self.segment_id, "from": self.start,
                "to": self.end, "completes": self.completes}  # fmt: skip

    @classmethod
    def of(cls, value: Mapping[str, int]) -> "Bound":
        """From its recorded form."""
        return cls(value["stream"], value["segment"], value["from"], value["to"],
                   bool(value["completes"]))  # fmt: skip


def successors(state: SegmentState, graph: Sequence[SegmentState]) -> list[SegmentState]:
    """The segments that took the place of a sealed one. `graph` is in the order of the ids."""
    if state.sealed_epoch is None:
        return []
    first, past = (
        bisect_left(graph, segment_id(0, epoch), key=lambda other: other.segment.segment_id)
        for epoch in (state.sealed_epoch, state.sealed_epoch + 1)
    )
    return [other for other in graph[first:past] if other.segment.overlaps(state.segment)]


def readable_until(until: StreamCut | None, state: SegmentState) -> int:
    """How far a segment may be read, when a run stops at the cut `until`."""
    if until is None:
        return state.end
    if state.segment in until.offsets:
        limit = until.offsets[state.segment]
        return 0 if limit is FUTURE else min(state.end, limit)
    return 0 if until.contains(state.segment) else state.end


def bounds_of_stream(
    stream_id: int,
    owned: Mapping[Segment, int],
    waiting: Sequence[Segment],
    graph: Sequence[SegmentState],
    until: StreamCut | None,
    cap: Callable[[Segment, int, int], int],
) -> list[Bound]:
    """What a reader that owns the positions `owned` may read of one stream.

    `waiting`: segments of the group that this batch does not read (other readers' and future
    ones). `cap(segment, start, end)` gives the end that the budget allows.
    """
    states = {state.segment: state for state in graph}
    unfinished = set(waiting) | set(owned)
    queue = [(segment.segment_id, segment, start) for segment, start in owned.items()]
    heapq.heapify(queue)
    queued = set(owned)
    bounds = []
    while queue:
        _, segment, start = heapq.heappop(queue)
        state = states[segment]
        # What is owned is present: nothing unread lies before it.
        if segment not in owned and any(
            other.segment_id < segment.segment_id and other.overlaps(segment)
            for other in unfinished
        ):
            unfinished.add(segment)  # it waits, and what comes after it waits for it
            continue
        limit = max(start, readable_until(until, state))
        end = cap(segment, start, limit)
        following = [other.segment for other in successors(state, graph)]
        # A sealed segment is left only for successors that are in sight, all of them.
        completes = end == state.end and covers(
            [KeyRange(other.key_low, other.key_high) for other in following],
            KeyRange(segment.key_low, segment.key_high),
        )
        if end > start or completes:
            bounds.append(Bound(stream_id, segment.segment_id, start, end, completes))
        if not completes:
            unfinished.add(segment)
            continue
        unfinished.discard(segment)
        for successor in following:
            if successor not in queued:
                queued.add(successor)
                unfinished.discard(successor)  # it may wait there as a future one
                heapq.heappush(queue, (successor.segment_id, successor, 0))
    return bounds


def share_budget(wants: Mapping[K, int], budget: int) -> dict[K, int]:
    """Divide a budget of events over segments: nobody gets more than it wants, the rest is even."""
    left = budget
    shares: dict[K, int] = {}
    for i, (key, want) in enumerate(sorted(wants.items(), key=lambda item: item[1])):
        shares[key] = min(want, max(1, left // (len(wants) - i)))
        left = max(0, left - shares[key])
    return shares
