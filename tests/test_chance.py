"""What is random in a run follows from its seed, and CI's seed is the same for every commit."""

import os
import subprocess
import sys

import pytest

from tests.chance import Found, random_for
from tests.rooms import REPOSITORY


def seed_of(**environment: str) -> int:
    """The seed of a run that begins in this environment."""
    left = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_TEST_")}
    done = subprocess.run(
        [sys.executable, "-c", "from tests.chance import SEED; print(SEED)"],
        env=left | environment, cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(done.stdout)


def test_a_run_has_the_same_seed_each_time_and_one_of_all_cases_has_a_new_one() -> None:
    assert seed_of() == seed_of(WEIR_TEST_SEED="")
    drawn = {seed_of(WEIR_TEST_BUDGET="full") for _ in range(3)}
    assert len(drawn) == 3
    assert {seed_of(WEIR_TEST_SEED="7", WEIR_TEST_BUDGET=budget) for budget in ("", "full")} == {7}


def test_a_case_that_was_found_by_a_seed_is_played_in_runs_with_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.chance.SEED", 7)
    failed = random_for("appends", 3).random()
    monkeypatch.setattr("tests.chance.SEED", 8)
    assert random_for("appends", 3).random() != failed
    assert random_for("appends", Found(3, seed=7)).random() == failed
