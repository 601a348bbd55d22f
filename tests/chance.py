"""Chance in tests: every run draws from a seed of its own, which it prints and which repeats it.

`make test SEED=7` draws what the run with the printed seed 7 drew. `make test` plays a
sixteenth of the random cases, `make test-fast`, too (`WEIR_TEST_BUDGET=fast`), `make soak` all of
them (`WEIR_TEST_BUDGET=full`).
"""

import os
import time
from collections.abc import Iterable
from random import Random
from typing import TypeVar

T = TypeVar("T")

SEED = int(os.environ.get("WEIR_TEST_SEED") or time.time_ns() % 1_000_000_000)
os.environ["WEIR_TEST_SEED"] = str(SEED)  # the workers of pytest-xdist inherit it

BUDGET = os.environ.get("WEIR_TEST_BUDGET", "")
FULL = BUDGET == "full"
FAST = BUDGET == "fast"
_ONE_OF = 1 if FULL else 16


def random_for(*case: object) -> Random:
    """Return random numbers for one case of a test, equal in each run with the same seed."""
    return Random(f"{SEED} {case}")


def cases(full: int, *, least: int = 1) -> int:
    """Return how many of so many random cases this run plays: all, or a sixteenth."""
    return max(least, full // _ONE_OF)


def some(found: Iterable[T], *case: object, least: int = 1) -> list[T]:
    """Return those of a list that this run plays, in their order."""
    every = list(found)
    count = min(len(every), cases(len(every), least=least))
    chosen = random_for("some", *case).sample(range(len(every)), count)
    return [every[number] for number in sorted(chosen)]
