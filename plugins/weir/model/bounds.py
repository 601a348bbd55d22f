"""The bounds of a batch. Pure: what a reader may read next, given its positions and the graph.

A batch runs on through a sealed segment into a successor when every predecessor of it that the
group has not passed is read to its end in the same batch (the merge barrier otherwise).
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import inf
from typing import NamedTuple

from weir.model.key_space import KeyRange, covers
from weir.model.segment import Segment
from weir.model.stream_cut import FUTURE, StreamCut


class SegmentState(NamedTuple):
    """A segment as it is now: its end is its tail, or its final size once it is sealed."""

    segment: Segment
    end: int
    sealed_epoch: int | None


class Graph:
    """The segments of a stream at a group's positions and after them, as far as it looks ahead."""

    def __init__(self, states: Iterable[SegmentState]) -> None:
        self.states = {state.segment: state for state in states}

    def successors(self, segment: Segment) -> list[Segment]:
        """The segments that took the place of a sealed one, in the order of their keys."""
        sealed_epoch = self.states[segment].sealed_epoch
        if sealed_epoch is None:
            return []
        created = self._created.get(sealed_epoch, [])
        first = bisect_right(created, segment.key_low, key=lambda other: other.key_high)
        past = bisect_left(created, segment.key_high, key=lambda other: other.key_low)
        return created[first:past]

    @cached_property
    def _created(self) -> dict[int, list[Segment]]:
        """By epoch what it created, in the order of the keys: these segments are disjoint."""
        created: dict[int, list[Segment]] = {}
        for segment in sorted(self.states, key=lambda s: s.key_low):
            created.setdefault(segment.epoch, []).append(segment)
        return created


class Bound(NamedTuple):
    """Read a segment from one offset up to another (exclusive)."""

    stream_id: int
    segment_id: int
    start: int
    end: int
    completes: bool  # the segment is sealed, `end` is its end, and its successors are known

    @classmethod
    def of(cls, value: Mapping[str, int]) -> "Bound":
        """From its recorded form."""
        return cls(value["stream"], value["segment"], value["from"], value["to"],
                   bool(value.get("completes")))  # fmt: skip


def recorded(bounds: Iterable[Bound]) -> str:
    """Bounds as a batch records them: a JSON array, in which is not said what completes nothing.

    Written out, as the encoder takes as long for a thousand of them as all that finds them.
    """
    known = '{"stream": %d, "segment": %d, "from": %d, "to": %d'
    ends = "}", ', "completes": true}'
    return "[" + ",".join(known % bound[:4] + ends[bound.completes] for bound in bounds) + "]"


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
    waiting: Iterable[Segment],
    graph: Graph,
    until: StreamCut | None,
    cap: Callable[[Segment, int, int], int],
    share: int | None = None,
) -> list[Bound]:
    """What a reader that owns the positions `owned` may read of one stream.

    `waiting`: segments of the group that this batch does not read (other readers' and future
    ones). `cap(segment, start, end)` gives the end that the budget allows. `share`: how many events
    are this reader's, if there are others: beyond those the batch does not run on into what follows
    its segments, which is left for all of them.
    """
    starts = dict(owned)
    waits = set(waiting)
    # Segments by age: what comes before one is decided before it.
    queue = sorted(starts.keys() | waits, reverse=True)
    entered: list[Segment] = []  # a heap of those that the batch runs on into
    unread = _KeySet()  # keys at which something of a smaller id is not read to its end
    bounds = []
    room = inf if share is None else share - sum(graph.states[s].end - owned[s] for s in owned)
    while queue or entered:
        if not entered or (queue and queue[-1] < entered[0]):
            segment = queue.pop()
        else:
            segment = heapq.heappop(entered)
        start = starts.get(segment)
        # What is owned is present: nothing unread lies before it.
        if start is None or (segment not in owned and unread.overlaps(segment)):
            unread.add(segment)
            continue
        state = graph.states[segment]
        end = cap(segment, start, max(start, readable_until(until, state)))
        following = graph.successors(segment) if end == state.end else []
        # A sealed segment is left only for successors that are in sight, all of them.
        completes = following != [] and covers(
            [KeyRange(other.key_low, other.key_high) for other in following],
            KeyRange(segment.key_low, segment.key_high),
        )
        if end > start or completes:
            bounds.append(Bound(stream_id, segment.segment_id, start, end, completes))
        if not completes:
            unread.add(segment)
            continue
        new = [successor for successor in following if successor not in starts]
        # All of them or none: one part of the keys would get ahead of the other.
        mine = [successor for successor in new if successor not in waits]
        size = sum(graph.states[successor].end for successor in mine)
        fits = size <= max(0, room)
        room -= size if fits else 0
        for successor in new:
            starts[successor] = 0
            if successor in mine:  # it may wait there as a future one
                if fits:
                    heapq.heappush(entered, successor)
                else:
                    unread.add(successor)
    return bounds


class _KeySet:
    """Keys, as disjoint ranges in order; it only grows."""

    def __init__(self) -> None:
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._new: list[Segment] = []  # put in order when it is asked, which mostly is never

    def add(self, segment: Segment) -> None:
        self._new.append(segment)

    def _insert(self, segment: Segment) -> None:
        first = bisect_left(self._highs, segment.key_low)
        past = bisect_right(self._lows, segment.key_high)
        touched = slice(first, past)
        low = min([segment.key_low, *self._lows[touched][:1]])
        high = max([segment.key_high, *self._highs[touched][-1:]])
        self._lows[touched], self._highs[touched] = [low], [high]

    def overlaps(self, segment: Segment) -> bool:
        while self._new:
            self._insert(self._new.pop())
        i = bisect_right(self._highs, segment.key_low)
        return i < len(self._lows) and self._lows[i] < segment.key_high
