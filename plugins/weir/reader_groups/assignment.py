"""Which reader owns which segment: by load, fair, sticky, with the least movement. Pure."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

K = TypeVar("K")


def assign(
    loads: Mapping[K, int],
    owners: Mapping[K, str],
    readers: Sequence[str],
    pinned: frozenset[K] = frozenset(),
) -> dict[K, str]:
    """An owner for each segment: fair in that moving one segment lowers no pair's larger load.

    `loads`: events to read per segment, at least 1 is counted. `owners`: who has it now. `readers`:
    those who may own (also expected ones that have not joined yet). `pinned`: segments of open
    batches, which move only with their batch. Every reader computes the same answer.
    """
    weight = {segment: max(1, load) for segment, load in loads.items()}
    total = dict.fromkeys(readers, 0)
    result: dict[K, str] = {}
    for segment, owner in owners.items():
        if owner in readers or segment in pinned:
            result[segment] = owner
            total[owner] = total.get(owner, 0) + weight[segment]
    if not readers:
        return result
    rank = {segment: i for i, segment in enumerate(weight)}
    free = [segment for segment in weight if segment not in result]
    for segment in sorted(free, key=lambda s: (-weight[s], rank[s])):
        reader = min(readers, key=lambda r: (total[r], r))
        result[segment] = reader
        total[reader] += weight[segment]
    while True:
        least = min(readers, key=lambda r: (total[r], r))
        # From the most loaded reader first, else a reader that joins would set others moving too.
        moves = [
            (-total[owner], max(total[owner] - weight[s], total[least] + weight[s]), rank[s], s)
            for s, owner in result.items()
            if s not in pinned and owner != least and total[owner] - total[least] > weight[s]
        ]
        if not moves:
            return result
        segment = min(moves, key=lambda move: move[:3])[3]
        total[result[segment]] -= weight[segment]
        total[least] += weight[segment]
        result[segment] = least
