"""Chance in tests: what is random comes from one seed, so that each run can be repeated.

`make test` and `make test-fast` have a fixed seed and play a sixteenth of the random cases: the
same in each run of the same files. `make soak` and `make test-release` play all of them
(`WEIR_TEST_BUDGET=full`), from a new seed each time, which they print. `SEED=7` chooses one.
"""

import os
import time
from collections.abc import Iterable
from random import Random
from typing import TypeVar

T = TypeVar("T")

BUDGET = os.environ.get("WEIR_TEST_BUDGET", "")
FULL = BUDGET == "full"
FIXED = 1
SEED = int(os.environ.get("WEIR_TEST_SEED") or (time.time_ns() % 1_000_000_000 if FULL else FIXED))
os.environ["WEIR_TEST_SEED"] = str(SEED)  # the workers of pytest-xdist inherit it

_ONE_OF = 1 if FULL else 16


class Found(int):
    """A case that failed once, with the seed of that run: `[*range(cases(40)), Found(7, seed=123)]`
    plays it in each run, beside those of the run's own seed."""

    seed: int

    def __new__(cls, case: int, *, seed: int) -> "Found":
        """Make case `case` of the seed `seed`."""
        found = super().__new__(cls, case)
        found.seed = seed
        return found


def random_for(*case: object) -> Random:
    """Return random numbers for one case of a test, equal in each run with the same seed."""
    seed = next((part.seed for part in case if isinstance(part, Found)), SEED)
    return Random(f"{seed} {case}")


def cases(full: int, *, least: int = 1) -> int:
    """Return how many of so many random cases this run plays: all, or a sixteenth."""
    return max(least, full // _ONE_OF)


def some(found: Iterable[T], *case: object, least: int = 1) -> list[T]:
    """Return those of a list that this run plays, in their order."""
    every = list(found)
    count = min(len(every), cases(len(every), least=least))
    chosen = random_for("some", *case).sample(range(len(every)), count)
    return [every[number] for number in sorted(chosen)]
