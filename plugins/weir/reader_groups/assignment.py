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
from typing import Generic, TypeVar

from weir.reader_groups.plan import Graph
from weir.segment import Segment

K = TypeVar("K")


def unread_events(present: Mapping[Segment, int], graph: Graph) -> dict[Segment, int]:
    """Per position the events in its keys up to the tail: what is left of its segment, and of those
    that follow it as large a part as they have keys in common."""
    steps: dict[float, float] = {0.0: 0.0}  # by how much the events per key change, and where
    for segment, state in graph.states.items():
        if state.end and segment not in present:
            density = state.end / (segment.key_high - segment.key_low)
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
        segment: graph.states[segment].end
        - start
        + max(0, round(till(segment.key_high) - till(segment.key_low)))
        for segment, start in present.items()
    }


def assign(
    loads: Mapping[K, int],
    owners: Mapping[K, str],
    readers: Sequence[str],
    *,
    held: Collection[K] = (),
    lags: Mapping[K, int] | None = None,
) -> dict[K, str]:
    """An owner for each segment: fair in that moving one segment lowers no pair's larger load.

    `loads`: events to read per segment, at least 1 is counted. `owners`: who has it now. `readers`:
    those who may own (also expected ones that have not joined yet). `held`: segments of open
    batches, which move only with their batch. `lags`: how far each is behind. Every reader computes
    the same answer.
    """
    lags, known = lags or {}, set(readers)
    weight = {segment: max(1, load) for segment, load in loads.items()}
    order = sorted(weight, key=lambda s: -lags.get(s, 0))
    shares = _Shares(readers, weight, {segment: i for i, segment in enumerate(order)})
    for segment, owner in owners.items():
        if segment in held:
            shares.hold(segment, owner)
        elif owner in known:
            shares.give(segment, owner)
    if readers:
        for segment in sorted(order, key=lambda s: -weight[s]):
            if segment not in shares.owners:
                shares.give(segment, shares.least(readers))
        while shares.move_one():
            pass
    return shares.owners


class _Shares(Generic[K]):
    """Who has what, and how much that is."""

    def __init__(
        self, readers: Sequence[str], weight: Mapping[K, int], rank: Mapping[K, int]
    ) -> None:
        self.total = dict.fromkeys(readers, 0)
        self.owners: dict[K, str] = {}
        self._weight, self._rank = weight, rank
        # What may move, by weight and rank.
        self._movable: dict[str, list[tuple[int, int, K]]] = {reader: [] for reader in readers}

    def hold(self, segment: K, owner: str) -> None:
        self.owners[segment] = owner
        self.total[owner] = self.total.get(owner, 0) + self._weight[segment]

    def give(self, segment: K, owner: str) -> None:
        self.hold(segment, owner)
        insort(self._movable[owner], (self._weight[segment], self._rank[segment], segment))

    def least(self, readers: Collection[str]) -> str:
        return min(readers, key=lambda r: (self.total[r], r))

    def move_one(self) -> bool:
        """Move one segment to a reader whose load stays below that of the one it leaves."""
        target = self.least(self._movable)
        # From the most loaded one first, else a reader that joins would set others moving too.
        for owner in sorted(self._movable, key=lambda r: (-self.total[r], r)):
            found = self._halving(self._movable[owner], self.total[owner] - self.total[target])
            if found is not None:
                entries = self._movable[owner]
                del entries[bisect_left(entries, found[:2], key=lambda entry: entry[:2])]
                self.total[owner] -= found[0]
                self.give(found[2], target)
                return True
        return False

    @staticmethod
    def _halving(entries: list[tuple[int, int, K]], gap: int) -> tuple[int, int, K] | None:
        """What brings two readers that are `gap` apart closest together, by weight and rank."""
        i = bisect_left(entries, (gap / 2,), key=lambda entry: entry[:1])
        near = entries[i : i + 1]
        if i > 0:
            near.append(entries[bisect_left(entries, entries[i - 1][0], key=lambda e: e[0])])
        fitting = [entry for entry in near if entry[0] < gap]
        return min(fitting, key=lambda e: (abs(2 * e[0] - gap), e[1]), default=None)
