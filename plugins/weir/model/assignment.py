"""Which reader owns which segment: by load, fair, sticky, with little movement. Pure.

A segment weighs the events that are to be read in its keys, up to the tail: they are the work, and
readers with as much work each keep step, so that no part of the key space gets ahead. Lag (the
clock of the tail less that of the first unread event) doesn't weigh, because an old event is no
more work than a new one. It says what comes first: of segments of equal weight the one that is
furthest behind is placed first, and a reader reads first what was written first.
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
    """Per position the events in its keys up to the tail: what is left of its segment, and of those
    that follow it as large a part as they have keys in common."""
    left = {segment: graph.states[segment].end - start for segment, start in present.items()}
    later = [s for s, state in graph.states.items() if state.end and s not in present]
    if not later:
        return left
    steps: dict[float, float] = {0.0: 0.0}  # by how much the events per key change, and where
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
    """An owner for each segment: fair in that moving one segment lowers no pair's larger load.

    `loads`: events to read per segment, at least 1 is counted. `owners`: who has it now. `readers`:
    those who may own (also expected ones that have not joined yet). `held`: segments of open
    batches, which move only with their batch. `lags`: how far each is behind. `reserved`: who alone
    may own some of them. Every reader computes the same answer.
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
    """Who has what, and how much that is."""

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
        """Move one segment after the other, each to a reader whose load stays below that of the one
        it leaves."""
        # By weight and place in `movable`: per owner, and per those who may own it.
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
        # From the most loaded one first, else a reader that joins would set others moving too.
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
    """Which of the entries brings two readers that are `gap` apart closest together, with its
    weight and number; None if none of them does."""
    i = bisect_left(entries, gap / 2, key=lambda entry: entry[0])
    near = [i] if i < len(entries) else []
    if i > 0:
        near.append(bisect_left(entries, entries[i - 1][0], key=lambda entry: entry[0]))
    fitting = [(j, *entries[j][:2]) for j in near if entries[j][0] < gap]
    return min(fitting, key=lambda found: (abs(2 * found[1] - gap), found[2]), default=None)
