"""The rates of a segment over its life, from its commits. Pure; times in microseconds."""

from collections import defaultdict
from collections.abc import Iterable

from weir.history.scene import Slice
from weir.model.clock import SECOND
from weir.model.segment_rates import Commit

BINS = 240  # parts of a picture's width that have rates of their own


def width_of_bin(begin: int, end: int) -> int:
    """Return the length of each of the `BINS` parts of a time."""
    return max(-(-(end - begin) // BINS), 1)


def slices_of(
    commits: Iterable[Commit], begin: int, width: int, end: int | None = None
) -> tuple[Slice, ...]:
    """Return the rates of a segment in each part of its life that has events.

    Each commit is spread over the time since the one before it. Parts are `width` long, and the
    first one begins at `begin`; what came before, and from `end` on, is left out.
    """
    amounts: defaultdict[int, float] = defaultdict(float)
    lasts: dict[int, int] = {}
    firsts: dict[int, int] = {}
    for clock, since, amount in commits:
        spread = max(clock - since, 1)
        low, high = clock - spread, clock if end is None else min(clock, end)
        if low >= high:
            continue
        for i in range(max((low - begin) // width, 0), (high - 1 - begin) // width + 1):
            left, right = max(low, begin + i * width), min(high, begin + (i + 1) * width)
            amounts[i] += amount * ((right - left) / spread)
            firsts[i], lasts[i] = min(firsts.get(i, left), left), max(lasts.get(i, 0), right)
    return tuple(
        Slice(firsts[i], lasts[i], amounts[i] * SECOND / (lasts[i] - firsts[i]))
        for i in sorted(amounts)
    )
