"""The rates of a segment over its life, from its commits, and their few colours. Pure; times are in
microseconds."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from weir.model.clock import SECOND
from weir.model.segment_rates import Commit

COLOURS = 6  # besides the one for no events
_FACTOR = 1.5  # between two colours at least
_UNITS = (1, "/s"), (60, "/min"), (3600, "/h")


class Slice(NamedTuple):
    """A part of a segment's life, and its rate per second."""

    begin: int
    end: int
    rate: float


def slices_of(commits: Iterable[Commit], begin: int, width: int, end: int) -> list[Slice]:
    """Return the rates of a segment in each part of its life that has events.

    Each commit is spread over the time since the one before it. Parts are `width` long, and the
    first one begins at `begin`; what came before, and from `end` on, is left out.
    """
    amounts: defaultdict[int, float] = defaultdict(float)
    lasts: dict[int, int] = {}
    firsts: dict[int, int] = {}
    for clock, since, amount in commits:
        spread = max(clock - since, 1)
        low, high = clock - spread, min(clock, end)
        if low >= high:
            continue
        for i in range(max((low - begin) // width, 0), (high - 1 - begin) // width + 1):
            left, right = max(low, begin + i * width), min(high, begin + (i + 1) * width)
            amounts[i] += amount * ((right - left) / spread)
            firsts[i], lasts[i] = min(firsts.get(i, left), left), max(lasts.get(i, 0), right)
    return [
        Slice(firsts[i], lasts[i], amounts[i] * SECOND / (lasts[i] - firsts[i]))
        for i in sorted(amounts)
    ]


@dataclass(frozen=True)
class Level:
    """A colour, and which rates have it, in events per second."""

    kind: str
    words: str


class Levels:
    """The colours for some rates: one for none, and `COLOURS`, each up to a rate in few digits."""

    def __init__(self, rates: Sequence[float]) -> None:
        above = [rate for rate in rates if rate > 0]
        most, least = max(above, default=1.0), min(above, default=1.0)
        factor = max((most / least) ** (1 / COLOURS), _FACTOR)
        bounds = [most / factor**i for i in range(COLOURS - 1, 0, -1)]
        length, self._unit = next((one for one in _UNITS if bounds[0] * one[0] >= 0.01), _UNITS[-1])
        self._said = [float(f"{bound * length:.2g}") for bound in bounds]
        self._bounds = [bound / length for bound in self._said]

    def of(self, rate: float) -> int:
        """Return the colour of a rate: 0 for no events, at most `COLOURS`."""
        return 1 + bisect_right(self._bounds, rate) if rate > 0 else 0

    @property
    def legend(self) -> list[Level]:
        """What each colour means."""
        kinds = [*(f"rate{i}" for i in range(4)), *(f"cool{i}" for i in range(4, COLOURS + 1))]
        said, unit = [say_rate(bound) for bound in self._said], self._unit
        words = ["no events", f"under {said[0]}{unit}"]
        words += [f"{low} to {high}{unit}" for low, high in pairwise(said)]
        return [
            Level(*one) for one in zip(kinds, [*words, f"{said[-1]}{unit} or more"], strict=True)
        ]


def say_rate(rate: float) -> str:
    """Return a rate in few letters: 0.05, 12, 1.5k, 20M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size * 0.9995:
            return f"{rate / size:.3g}{letter}"
    return f"{rate:.1e}" if 0 < rate < 0.001 else f"{rate:.3g}"
