"""A figure: pairs of runs, ours beside a reference, interleaved; one JSON line."""

import gc
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

import psutil  # type: ignore[import-untyped]

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
        `processor` is the median ratio of processor time, which others on the machine change less.
        `begun`: when its preparation began, by the monotonic clock. `said`: what the line says in
        addition, once the pairs have run.
        """
        for _ in range(self.warm_up):
            self.reference()
            self.ours()
        pairs, worked = self._pairs()
        repeated = 0
        while repeated < REPEATS and self._unclear(pairs):
            repeated += 1
            more = self._pairs()
            pairs += more[0]
            worked += more[1]
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
            **({"processor": round(median(worked), 3)} if worked else {}),
            **({"repeated": f"{repeated} time(s), as the pairs disagreed"} if repeated else {}),
            **said,
            **self.notes,
        }
        print(json.dumps(line), flush=True)
        return ok

    def _pairs(self) -> tuple[list[tuple[float, float]], list[float]]:
        """Run the pairs once more. Return what ours and the reference cost in each, and the ratios
        of their processor time."""
        pairs, worked = [], []
        for i in range(self.runs):
            # The sides take turns to be first, so that neither always finds the caches warm.
            order = (self.reference, self.ours) if i % 2 == 0 else (self.ours, self.reference)
            costs = {work: _cost(work) for work in order}
            (ours, our_time), (reference, their_time) = costs[self.ours], costs[self.reference]
            pairs.append((ours, reference))
            if our_time and their_time:
                worked.append(our_time / their_time)
            print(
                f"  {self.name}: {ours:.4g} {self.unit} beside {reference:.4g}"
                + (f", processor time {worked[-1]:.3f}" if worked else ""),
                file=sys.stderr,
                flush=True,
            )
        return pairs, worked

    def _unclear(self, pairs: list[tuple[float, float]]) -> bool:
        """Return whether the median is beyond the limit, and not all pairs are."""
        ratios = [ours / reference for ours, reference in pairs]
        return self.limit is not None and min(ratios) <= self.limit < median(ratios)


def _cost(work: Callable[[], float | None]) -> tuple[float, float | None]:
    """Do the work once. Return what it cost, and its processor time, if the cost is its time."""
    # As timeit does: this figure does not pay for collecting what earlier figures left behind.
    gc.collect()
    gc.disable()
    try:
        before = _processor_time()
        start = time.perf_counter()
        cost = work()
        took = time.perf_counter() - start
        return (took, _processor_time() - before) if cost is None else (cost, None)
    finally:
        gc.enable()


def _processor_time() -> float:
    """Return the seconds that processors have worked for this process and for all that it has
    started: its JVM and its workers, not Postgres."""
    seconds = 0.0
    for one in (this := psutil.Process(), *this.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            seconds += sum(one.cpu_times()[:4])  # with those of its children that have ended
    return seconds
