"""A figure: pairs of runs, ours beside a reference, interleaved; one JSON line."""

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

REPEATS = 2


@dataclass(frozen=True)
class Figure:
    """What is measured. `ours` and `reference` do the work once and return its cost in `unit`;
    nothing, if that is the seconds they took.

    `limit`: what the median of the pairs' ratios must not exceed, if anything. `goal`: what we want
    it to be.
    """

    name: str
    what: str
    ours: Callable[[], float | None]
    reference: Callable[[], float | None]
    limit: float | None
    goal: float | None = None
    runs: int = 5
    small_runs: int = 2  # in a small run; each side begins one of them
    warm_up: int = 1
    unit: str = "s"
    size: str = "small"
    notes: dict[str, Any] = field(default_factory=dict)  # what else the line says

    def measure(self, begun: float, said: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Run the pairs, print the line, and return whether the median is within the limit.

        A median beyond the limit with pairs on both sides of it may be the machine's noise: then as
        many pairs are run again, at most `REPEATS` times, and the line gives the median of all.
        `begun`: when its preparation began, by the monotonic clock. `said`: what the line says in
        addition, once the pairs have run.
        """
        for _ in range(self.warm_up):
            self.reference()
            self.ours()
        pairs = self._pairs()
        repeated = 0
        while repeated < REPEATS and self._unclear(pairs):
            repeated += 1
            pairs += self._pairs()
        ratios = [ours / reference for ours, reference in pairs]
        ok = self.limit is None or median(ratios) <= self.limit
        line = {
            "figure": self.name,
            "size": self.size,
            "ours": round(median(ours for ours, _ in pairs), 6),
            "reference": round(median(reference for _, reference in pairs), 6),
            "unit": self.unit,
            "ratio": round(median(ratios), 3),
            "best": round(min(ratios), 3),
            "limit": self.limit,
            "goal": self.goal,
            "ok": ok,
            "what": self.what,
            "runs": len(pairs),
            "took": round(time.monotonic() - begun),  # seconds, with what is not timed
            **({"repeated": f"{repeated} time(s), as the pairs disagreed"} if repeated else {}),
            **said,
            **self.notes,
        }
        print(json.dumps(line), flush=True)
        return ok

    def _pairs(self) -> list[tuple[float, float]]:
        """Run the pairs once more, and return what ours and the reference cost in each."""
        pairs = []
        for i in range(self.runs):
            # The sides take turns to be first, so that neither always finds the caches warm.
            order = (self.reference, self.ours) if i % 2 == 0 else (self.ours, self.reference)
            costs = {work: cost(work) for work in order}
            pairs.append((costs[self.ours], costs[self.reference]))
            print(
                f"  {self.name}: {pairs[-1][0]:.4g} {self.unit} beside {pairs[-1][1]:.4g}",
                file=sys.stderr,
                flush=True,
            )
        return pairs

    def _unclear(self, pairs: list[tuple[float, float]]) -> bool:
        """Return whether the median is beyond the limit, and not all pairs are."""
        ratios = [ours / reference for ours, reference in pairs]
        return self.limit is not None and min(ratios) <= self.limit < median(ratios)


def cost(work: Callable[[], float | None]) -> float:
    """Do the work once, and return what it cost."""
    # As timeit does: this figure does not pay for collecting what earlier figures left behind.
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        cost = work()
        return time.perf_counter() - start if cost is None else cost
    finally:
        gc.enable()
