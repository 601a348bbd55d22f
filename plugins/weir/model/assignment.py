"""Assign segments to readers by load: fair, and with few changes of owner (semantics 14). Pure.

A segment weighs the unread events in its keys, up to the end of the group or the tail. A reader's
load is the time that it takes for what it owns: events divided by its rate. Readers with equal
loads advance together, so that no part of the key space gets ahead. Lag (the clock of the tail
minus that of the first unread event) has no weight, because an old event is no more work than a new
one. Lag only decides the order: of segments of equal weight, the one that is furthest behind is
assigned first.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from math import log2
from operator import mul
from types import MappingProxyType
from typing import Generic, TypeVar

from weir.model.bounds import Graph, readable_until
from weir.model.segment import Segment
from weir.model.stream_cut import StreamCut

K = TypeVar("K")
_Entries = dict[str, dict[frozenset[str], list[tuple[int, int, K]]]]


def unread_events(
    present: Mapping[Segment, int], graph: Graph, end: StreamCut | None = None
) -> dict[Segment, int]:
    """Return the unread events per position, up to the cut `end` (None: the tail).

    They are the rest of the position's segment, and of each later segment the part of its events
    that corresponds to the keys that the two have in common.
    """
    ends = {segment: readable_until(end, state) for segment, state in graph.states.items()}
    left = {segment: max(0, ends[segment] - start) for segment, start in present.items()}
    later = [s for s, until in ends.items() if until and s not in present]
    if not later:
        return left
    steps: dict[float, float] = {0.0: 0.0}  # key: the change in events per key there
    for segment in later:
        density = ends[segment] / (segment.key_high - segment.key_low)
        steps[segment.key_low] = steps.get(segment.key_low, 0.0) + density
        steps[segment.key_high] = steps.get(segment.key_high, 0.0) - density
    keys = sorted(steps)
    densities = list(accumulate(steps[key] for key in keys))
    widths = [high - low for low, high in pairwise(keys)]
    before: list[float] = list(accumulate(map(mul, densities, widths), initial=0.0))

    def events_before(key: float) -> float:
        i = bisect_right(keys, key) - 1
        return before[i] + densities[i] * (key - keys[i])

    return {
        segment: events
        + max(0, round(events_before(segment.key_high) - events_before(segment.key_low)))
        for segment, events in left.items()
    }


_STEPS = 2  # rates are rounded to this many steps per factor of 2
_SLOWEST = 16  # no reader counts as slower than the fastest by more than this factor


def relative_rates(events_per_second: Mapping[str, float]) -> dict[str, float]:
    """Return the rates of readers as multiples of the slowest one's, in steps of the square root of
    2, so that a rate that varies a little moves no segment."""
    known = {reader: rate for reader, rate in events_per_second.items() if rate > 0}
    if not known:
        return {}
    fastest = max(known.values())
    steps = {
        reader: round(_STEPS * log2(max(rate / fastest, 1 / _SLOWEST)))
        for reader, rate in known.items()
    }
    slowest = min(steps.values())
    return {reader: 2.0 ** ((step - slowest) / _STEPS) for reader, step in steps.items()}


def assign(
    loads: Mapping[K, int],
    owners: Mapping[K, str],
    readers: Sequence[str],
    *,
    in_batches: Collection[K] = (),
    lags: Mapping[K, int] = MappingProxyType({}),
    reserved: Mapping[K, frozenset[str]] = MappingProxyType({}),
    rates: Mapping[str, float] = MappingProxyType({}),
) -> dict[K, str]:
    """Return an owner for each segment, so that moving one segment would not lower the larger load
    of any two readers.

    `loads`: unread events per segment; each counts as at least 1. `owners`: the present owners.
    `readers`: who may own segments, including readers that are expected and have not joined yet.
    `in_batches`: segments of open batches, which keep their owners. `lags`: how far each segment is
    behind, in microseconds. `reserved`: the only readers that may own certain segments. `rates`:
    how fast readers are, relative to each other; one without a rate is as fast as the average.

    Every reader computes the same answer from the same arguments.
    """
    weight = {segment: max(1, load) for segment, load in loads.items()}
    order = sorted(weight, key=lambda s: -lags.get(s, 0)) if lags else list(weight)
    shares = _Shares(readers, weight, reserved, rates)
    for segment, owner in owners.items():
        if segment in in_batches or owner in shares.may_own(segment):
            shares.give(segment, owner)
    if readers:
        free = [segment for segment in order if segment not in shares.owners]
        for segment in sorted(free, key=lambda s: -weight[s]):
            shares.give(segment, shares.least(shares.may_own(segment), weight[segment]))
    if len(readers) > 1:
        shares.even_out([segment for segment in order if segment not in in_batches])
    return shares.owners


class _Shares(Generic[K]):
    """The owners of segments, and the load of each reader: its events divided by its rate."""

    def __init__(
        self,
        readers: Sequence[str],
        weight: Mapping[K, int],
        reserved: Mapping[K, frozenset[str]],
        rates: Mapping[str, float],
    ) -> None:
        self.owners: dict[K, str] = {}
        self._total = dict.fromkeys(readers, 0)
        self._everybody = frozenset(readers)
        self._weight, self._reserved = weight, reserved
        known = [rates[reader] for reader in readers if reader in rates]
        average = sum(known) / len(known) if known else 1
        self._rate = {reader: rates.get(reader, average) for reader in readers}
        # Of the readers of one rate, the least loaded one is the best for any segment.
        self._rates = sorted({*self._rate.values()})

    def may_own(self, segment: K) -> frozenset[str]:
        return self._reserved.get(segment, self._everybody)

    def give(self, segment: K, owner: str) -> None:
        self.owners[segment] = owner
        self._total[owner] = self._total.get(owner, 0) + self._weight[segment]

    def load(self, reader: str, more: int = 0) -> float:
        return (self._total[reader] + more) / self._rate.get(reader, 1)

    def least(self, readers: Collection[str], more: int = 0) -> str:
        return min(readers, key=lambda r: (self.load(r, more), r))

    def least_of_each_rate(self, readers: Collection[str]) -> list[str]:
        if len(self._rates) == 1:
            return [self.least(readers)]
        by_rate = ([r for r in readers if self._rate[r] == rate] for rate in self._rates)
        return [self.least(equal) for equal in by_rate if equal]

    def even_out(self, movable: Sequence[K]) -> None:
        """Move segments one by one, each to a reader whose load stays below that of the reader that
        it leaves.
        """
        # Sorted by weight and index in `movable`; by owner, and by the set of readers that may own.
        entries: _Entries[K] = {reader: {} for reader in self._everybody}
        for i, segment in enumerate(movable):
            kind = entries[self.owners[segment]].setdefault(self.may_own(segment), [])
            kind.append((self._weight[segment], i, segment))
        for kinds in entries.values():
            for kind in kinds.values():
                kind.sort()
        while self._move_one(entries):
            pass

    def _move_one(self, entries: "_Entries[K]") -> bool:
        kinds = {kind for of_owner in entries.values() for kind in of_owner}
        targets = {kind: self.least_of_each_rate(kind) for kind in kinds}
        # The most loaded owner gives first. Otherwise a reader that joins would cause moves between
        # others.
        for owner in sorted(entries, key=lambda r: (-self.load(r), r)):
            moves = []
            for kind, mine in entries[owner].items():
                for target in targets[kind]:
                    if (found := self._evening(mine, owner, target)) is not None:
                        at, weight, i = found
                        larger = max(self.load(owner, -weight), self.load(target, weight))
                        moves.append((larger, i, target, kind, at))
            if moves:
                _, _, target, kind, at = min(moves, key=lambda move: move[:3])
                entry = entries[owner][kind].pop(at)
                self._total[owner] -= entry[0]
                self.give(entry[2], target)
                insort(entries[target].setdefault(kind, []), entry)
                return True
        return False

    def _evening(
        self, entries: list[tuple[int, int, K]], owner: str, target: str
    ) -> tuple[int, int, int] | None:
        """Return the entry of `owner` whose move brings the loads of the two closest together, as
        its index, weight and number; None if no move lowers the larger load.
        """
        slow, fast = self._rate[owner], self._rate[target]
        # The weight after whose move they would be equal.
        even = (self._total[owner] * fast - self._total[target] * slow) / (slow + fast)
        i = bisect_left(entries, even, key=lambda entry: entry[0])
        near = [i] if i < len(entries) else []
        if i > 0:
            near.append(bisect_left(entries, entries[i - 1][0], key=lambda entry: entry[0]))
        # Compared as loads are: a weight computed from them may be too large by the last digit, and
        # moves that only swap two loads never end.
        fitting = [
            (j, weight, number)
            for j in near
            for weight, number, _ in [entries[j]]
            if max(self.load(owner, -weight), self.load(target, weight)) < self.load(owner)
        ]
        return min(fitting, key=lambda found: (abs(found[1] - even), found[2]), default=None)
