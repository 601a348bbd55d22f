"""Which tests each `make` target runs. docs/testing.md says what each tier promises."""

from collections import defaultdict

import pytest

from tests.chance import FULL, random_for

# Fixtures and folders that tell; a test that needs it in another way is marked by hand.
JVM_FIXTURES = {"spark"}
AIRFLOW_FOLDERS = ("tests/acceptance/", "tests/airflow/")


def mark(item: pytest.Item) -> None:
    """Add the marks that follow from a test's fixtures, folder and kind."""
    if JVM_FIXTURES & set(getattr(item, "fixturenames", ())):
        item.add_marker("jvm")
    if item.nodeid.startswith(AIRFLOW_FOLDERS):
        item.add_marker("airflow")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("random")


# All that was collected, before any of it was chosen: docs/testing.md is compared with it.
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def tier_of(item: pytest.Item) -> str:
    """Return the first tier in which a test runs: fast, ci, release or soak."""
    marks = {one.name for one in item.iter_markers()}
    for tier in ("soak", "release"):
        if tier in marks:
            return tier
    return "ci" if marks & {"jvm", "airflow"} else "fast"


def not_drawn(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that this run leaves out of tests marked `drawn(n)`, of which it plays n.

    The run's seed chooses. `make test-release` plays all.
    """
    left_out: set[pytest.Item] = set()
    drawn: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not FULL and item.get_closest_marker("drawn"):
            drawn[item.nodeid.split("[")[0]].append(item)
    for test, found in drawn.items():
        [count] = found[0].get_closest_marker("drawn").args  # type: ignore[union-attr]  # as above
        left_out |= set(random_for(test).sample(found, max(0, len(found) - count)))
    return left_out
