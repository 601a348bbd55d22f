"""Rates as a few colours: which rate gets which, and what the legend says. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

COLOURS = 6  # besides the one for no events
_FACTOR = 1.5  # between two colours at least, without a target
_TARGETS = (0.25, 0.5, 1.0, 2.0, 4.0)  # with one: below the target cool colours, above it warm ones


@dataclass(frozen=True)
class Levels:
    """The least rate of each colour from the second on, ascending, and the names of the colours."""

    bounds: tuple[float, ...]
    kinds: tuple[str, ...]
    unit: str

    def of(self, rate: float) -> int:
        """Return the colour of a rate: 0 for no events, at most `COLOURS`."""
        return 1 + bisect_right(self.bounds, rate) if rate > 0 else 0

    def legend(self) -> list[tuple[str, str]]:
        """Return (kind, what it means) of each colour."""
        rates = [say_rate(bound) for bound in self.bounds]
        names = ["no events", f"under {rates[0]}"]
        names += [f"{low} to {high}" for low, high in pairwise(rates)]
        names.append(f"{rates[-1]} or more")
        return list(zip(self.kinds, names, strict=True))


def levels_of(rates: Sequence[float], unit: str, target: float | None = None) -> Levels:
    """Return the colours for these rates; with a target, they change from cool to warm there."""
    if target:
        kinds = tuple(f"rate{i}" for i in range(COLOURS + 1))
        return Levels(tuple(share * target for share in _TARGETS), kinds, unit)
    above = [rate for rate in rates if rate > 0]
    most, least = max(above, default=1.0), min(above, default=1.0)
    factor = max((most / least) ** (1 / COLOURS), _FACTOR)
    bounds = tuple(_round(most / factor**i) for i in range(COLOURS - 1, 0, -1))
    kinds = (*(f"rate{i}" for i in range(4)), *(f"cool{i}" for i in range(4, COLOURS + 1)))
    return Levels(bounds, kinds, unit)


def say_rate(rate: float) -> str:
    """Return a rate in few letters: 0.05, 12, 1.5k, 20M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= size * 0.9995:
            return f"{rate / size:.3g}{letter}"
    if 0 < rate < 0.001:
        return f"{rate:.1e}"
    return f"{rate:.3g}"


def _round(rate: float) -> float:
    return float(f"{rate:.2g}")
