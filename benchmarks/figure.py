"""A figure: pairs of timed runs, ours beside a reference, interleaved; one JSON line."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """What is measured. `ours` and `reference` do the work once and return nothing.

    `limit`: what the best pair's ratio must not exceed. `goal`: what we want of the median.
    """

    name: str
    what: str
    ours: Callable[[], object]
    reference: Callable[[], object]
    limit: float
    goal: float | None = None
    runs: int = 5
    warm_up: int = 1

    def measure(self) -> bool:
        """Run the pairs, print the line, and say whether the best pair is within the limit."""
        for _ in range(self.warm_up):
            self.reference()
            self.ours()
        pairs = []
        for i in range(self.runs):
            # Which comes first alternates, so that neither always finds the caches warm.
            order = (self.reference, self.ours) if i % 2 == 0 else (self.ours, self.reference)
            times = {work: _seconds(work) for work in order}
            pairs.append((times[self.ours], times[self.reference]))
            print(
                f"  {self.name}: {pairs[-1][0]:.3f} s beside {pairs[-1][1]:.3f} s",
                file=sys.stderr,
                flush=True,
            )
        ratios = [ours / reference for ours, reference in pairs]
        ok = min(ratios) <= self.limit
        line = {
            "figure": self.name,
            "ours": round(median(ours for ours, _ in pairs), 4),
            "reference": round(median(reference for _, reference in pairs), 4),
            "unit": "s",
            "ratio": round(median(ratios), 3),
            "best": round(min(ratios), 3),
            "limit": self.limit,
            "goal": self.goal,
            "ok": ok,
            "what": self.what,
            "runs": self.runs,
        }
        print(json.dumps(line), flush=True)
        return ok


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
