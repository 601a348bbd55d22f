"""Assign segments to readers by load: fair, and with few changes of owner (semantics 14). Pure.

A segment weighs the unread events in its keys, up to the tail. They are the work, and readers with
equal work advance together, so that no part of the key space gets ahead. Lag (the clock of the tail
minus that of the first unread event) has no weight, because an old event is no more work than a new
one. Lag only decides the order: of segments of equal weight, the one that is furthest behind is
assigned first.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from operator import mul
from types import MappingProxyType
from typing import Generic, TypeVar

from weir.model.bounds import Graph
from weir.model.segment import Segment

K = TypeVar("K")
_Entries = dict[str, dict[frozenset[str], list[tuple[int, int, K]]]]


def unread_events(present: Mapping[Segment, int], graph: Graph) -> dict[Segment, int]:
    """Return the unread events per position, up to the tail.

    They are the rest of the position's segment, and of each later segment the part of its events
    that corresponds to the keys that the two have in common.
    """
    left = {segment: graph.states[segment].end - start for segment, start in present.items()}
    later = [s for s, state in graph.states.items() if state.end and s not in present]
    if not later:
        return left
    steps: dict[float, float] = {0.0: 0.0}  # key: the change in events per key there
    for segment in later:
        density = graph.states[segment].end / (segment.key_high - segment.key_low)
        steps[segment.key_low] = steps.get(segment.key_low, 0.0) + density
        steps[segment.key_high] = steps.get(segment.key_high, 0.0) - density
    keys = sorted(steps)
    densities = list(accumulate(steps[key] for key in keys))
    widths = [high - low for low, high in pairwise(keys)]
    before: list[float] = list(accumulate(map(mul, densities, widths), initial=0.0))

    def till(key: float) -> float:
        i = bisect_right(keys, key) - 1
        return before[i] + densities[i] * (key - keys[i])

    return {
        segment: events + max(0, round(till(segment.key_high) - till(segment.key_low)))
        for segment, events in left.items()
    }


def assign(
    loads: Mapping[K, int],
    owners: Mapping[K, str],
    readers: Sequence[str],
    *,
    held: Collection[K] = (),
    lags: Mapping[K, int] = MappingProxyType({}),
    reserved: Mapping[K, frozenset[str]] = MappingProxyType({}),
) -> dict[K, str]:
    """Return an owner for each segment, so that moving one segment would not lower the larger load
    of any two readers.

    `loads`: unread events per segment; each counts as at least 1. `owners`: the present owners.
    `readers`: who may own segments, including readers that are expected and have not joined yet.
    `held`: segments of open batches, which keep their owners. `lags`: how far each segment is
    behind, in microseconds. `reserved`: the only readers that may own certain segments.

    Every reader computes the same answer from the same arguments.
    """
    weight = {segment: max(1, load) for segment, load in loads.items()}
    order = sorted(weight, key=lambda s: -lags.get(s, 0)) if lags else list(weight)
    shares = _Shares(readers, weight, reserved)
    for segment, owner in owners.items():
        if segment in held or owner in shares.may_own(segment):
            shares.give(segment, owner)
    if readers:
        free = [segment for segment in order if segment not in shares.owners]
        for segment in sorted(free, key=lambda s: -weight[s]):
            shares.give(segment, shares.least(shares.may_own(segment)))
    if len(readers) > 1:
        shares.even_out([segment for segment in order if segment not in held])
    return shares.owners


class _Shares(Generic[K]):
    """The owners of segments, and the load of each reader."""

    def __init__(
        self, readers: Sequence[str], weight: Mapping[K, int], reserved: Mapping[K, frozenset[str]]
    ) -> None:
        self.owners: dict[K, str] = {}
        self._total = dict.fromkeys(readers, 0)
        self._everybody = frozenset(readers)
        self._weight, self._reserved = weight, reserved

    def may_own(self, segment: K) -> frozenset[str]:
        return self._reserved.get(segment, self._everybody)

    def give(self, segment: K, owner: str) -> None:
        self.owners[segment] = owner
        self._total[owner] = self._total.get(owner, 0) + self._weight[segment]

    def least(self, readers: Collection[str]) -> str:
        return min(readers, key=lambda r: (self._total[r], r))

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
        targets = {kind: self.least(kind) for kind in kinds}
        # The most loaded owner gives first. Otherwise a reader that joins would cause moves between
        # others.
        for owner in sorted(entries, key=lambda r: (-self._total[r], r)):
            moves = []
            for kind, mine in entries[owner].items():
                gap = self._total[owner] - self._total[targets[kind]]
                if (found := _halving(mine, gap)) is not None:
                    at, weight, i = found
                    moves.append((max(weight - gap, -weight), i, kind, at))
            if moves:
                _, _, kind, at = min(moves, key=lambda move: move[:2])
                entry = entries[owner][kind].pop(at)
                self._total[owner] -= entry[0]
                self.give(entry[2], targets[kind])
                insort(entries[targets[kind]].setdefault(kind, []), entry)
                return True
        return False


def _halving(entries: list[tuple[int, int, K]], gap: int) -> tuple[int, int, int] | None:
    """Return the entry whose move brings two readers whose loads differ by `gap` closest together,
    as its index, weight and number; None if no move brings them closer.
    """
    i = bisect_left(entries, gap / 2, key=lambda entry: entry[0])
    near = [i] if i < len(entries) else []
    if i > 0:
        near.append(bisect_left(entries, entries[i - 1][0], key=lambda entry: entry[0]))
    fitting = [(j, *entries[j][:2]) for j in near if entries[j][0] < gap]
    return min(fitting, key=lambda found: (abs(2 * found[1] - gap), found[2]), default=None)
