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
    return "ci" if marks & {"jvm", "airflow", "server"} else "fast"


def drawn_from(item: pytest.Item) -> tuple[str, int] | None:
    """Return what of the repository is marked `drawn(n)` for a test, and n: the test's function, or
    its file. None for a test that every run plays.
    """
    for node, marker in item.iter_markers_with_node("drawn"):
        whole = item.nodeid.split("[")[0]
        return (whole if node is item else whole.split("::")[0]), int(marker.args[0])
    return None


def not_drawn(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests marked `drawn(n)` that this run leaves out.

    The run's seed chooses n of the cases of a function, of the tests of a file, or of the tests of
    all files that are marked with the same `among`; `make test-release` plays all.
    """
    left_out: set[pytest.Item] = set()
    drawn: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not FULL and (source := drawn_from(item)):
            marker = item.get_closest_marker("drawn")
            assert marker is not None
            among = marker.kwargs.get("among", source[0])
            drawn[among, source[1]].append(item)
    for (place, most), found in drawn.items():
        left_out |= set(random_for(place).sample(found, max(0, len(found) - most)))
    return left_out
