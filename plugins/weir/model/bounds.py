"""Decide what a reader may read next, from its positions and the graph of segments. Pure.

A batch continues from a sealed segment into a successor if every predecessor of that successor that
the group has not passed is read to its end in the same batch. Otherwise the successor waits until
the batches that read its predecessors are committed (semantics 13.3).
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
    """A segment as it is now. `end`: its tail, or its final size once it is sealed."""

    segment: Segment
    end: int
    sealed_epoch: int | None


class Graph:
    """The segments of a stream at a group's positions and after them, as far as the group looks
    ahead.
    """

    def __init__(self, states: Iterable[SegmentState]) -> None:
        self.states = {state.segment: state for state in states}

    def successors(self, segment: Segment) -> list[Segment]:
        """Return the successors of a segment in the order of their keys; none if it is active."""
        sealed_epoch = self.states[segment].sealed_epoch
        if sealed_epoch is None:
            return []
        created = self._created.get(sealed_epoch, [])
        first = bisect_right(created, segment.key_low, key=lambda other: other.key_high)
        past = bisect_left(created, segment.key_high, key=lambda other: other.key_low)
        return created[first:past]

    def has_all_successors(self, segment: Segment) -> bool:
        """Return whether the graph has successors of a segment for all of its keys."""
        following = self.successors(segment)
        return following != [] and covers(
            [KeyRange(other.key_low, other.key_high) for other in following],
            KeyRange(segment.key_low, segment.key_high),
        )

    @cached_property
    def _created(self) -> dict[int, list[Segment]]:
        """Return the segments that each epoch created, which are disjoint, in the order of their
        keys.
        """
        created: dict[int, list[Segment]] = {}
        for segment in sorted(self.states, key=lambda s: s.key_low):
            created.setdefault(segment.epoch, []).append(segment)
        return created


class Bound(NamedTuple):
    """A range of offsets of one segment that a batch reads: from `start` up to `end`, exclusive."""

    stream_id: int
    segment_id: int
    start: int
    end: int
    completes: bool  # the segment is sealed, `end` is its end, and its successors are known

    @classmethod
    def of(cls, value: Mapping[str, int]) -> "Bound":
        """Return the bound that a batch has recorded as this JSON object."""
        return cls(value["stream"], value["segment"], value["from"], value["to"],
                   bool(value.get("completes")))  # fmt: skip


def recorded(bounds: Iterable[Bound]) -> str:
    """Return bounds as a batch records them: a JSON array that leaves out `completes` where it is
    false.

    The text is put together by hand: for a thousand bounds, the JSON encoder takes as long as
    finding them.
    """
    known = '{"stream": %d, "segment": %d, "from": %d, "to": %d'
    ends = "}", ', "completes": true}'
    return "[" + ",".join(known % bound[:4] + ends[bound.completes] for bound in bounds) + "]"


def readable_until(until: StreamCut | None, state: SegmentState) -> int:
    """Return the offset up to which a segment may be read if a run stops at the cut `until`."""
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
    """Return what a reader that owns the positions `owned` may read of one stream, predecessors
    first.

    `waiting`: segments of the group that this batch does not read: those of other readers, and
    future ones. `until`: where the run stops; None: at the tail. `cap(segment, start, end)` returns
    the end that the budget allows. `share`: how many events this reader may read if there are other
    readers. A batch does not continue into successors beyond its share; these are left for all
    readers.
    """
    starts = dict(owned)
    waits = set(waiting)
    # By age, so that the predecessors of a segment are decided before it.
    queue = sorted(starts.keys() | waits, reverse=True)
    entered: list[Segment] = []  # a heap of the successors into which the batch continues
    unread = _KeySet()  # the keys of older segments that this batch does not read to their end
    bounds = []
    room = inf if share is None else share - sum(graph.states[s].end - owned[s] for s in owned)
    while queue or entered:
        if not entered or (queue and queue[-1] < entered[0]):
            segment = queue.pop()
        else:
            segment = heapq.heappop(entered)
        start = starts.get(segment)
        # An owned segment is present: no predecessor of it is unread.
        if start is None or (segment not in owned and unread.overlaps(segment)):
            unread.add(segment)
            continue
        state = graph.states[segment]
        end = cap(segment, start, max(start, readable_until(until, state)))
        # A batch leaves a sealed segment only if the graph has all of its successors.
        completes = end == state.end and graph.has_all_successors(segment)
        if end > start or completes:
            bounds.append(Bound(stream_id, segment.segment_id, start, end, completes))
        if not completes:
            unread.add(segment)
            continue
        new = [successor for successor in graph.successors(segment) if successor not in starts]
        # Into all successors or none, or one part of the keys would get ahead of the other.
        mine = [successor for successor in new if successor not in waits]
        size = sum(graph.states[successor].end for successor in mine)
        fits = size <= max(0, room)
        room -= size if fits else 0
        for successor in new:
            starts[successor] = 0
            if successor in mine:  # otherwise it waits in the group as a future segment
                if fits:
                    heapq.heappush(entered, successor)
                else:
                    unread.add(successor)
    return bounds


class _KeySet:
    """A set of keys, as disjoint sorted ranges. It only grows."""

    def __init__(self) -> None:
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._new: list[Segment] = []  # inserted only when somebody asks, which is rare

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
