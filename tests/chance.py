"""Chance in tests: every run draws from a seed of its own, which it prints and which repeats it.

`make test SEED=7` draws what the run with the printed seed 7 drew. `make test` plays a fifth of the
random cases; `make soak` plays them all (`WEIR_TEST_BUDGET=full`).
"""

import os
import time
from random import Random

SEED = int(os.environ.get("WEIR_TEST_SEED") or time.time_ns() % 1_000_000_000)
os.environ["WEIR_TEST_SEED"] = str(SEED)  # the workers of pytest-xdist inherit it

FULL = os.environ.get("WEIR_TEST_BUDGET", "") == "full"


def random_for(*case: object) -> Random:
    """Random numbers of one case of a test. Equal in each run with the same seed."""
    return Random(f"{SEED} {case}")


def cases(full: int, *, least: int = 1) -> int:
    """Return how many random cases to play: `full` of them in the soak, else a fifth."""
    return full if FULL else max(least, full // 5)
