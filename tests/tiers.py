"""Which tests each `make` target runs. docs/testing.md says what each tier promises."""

import pytest

# Fixtures and folders that tell; a test that needs it in another way is marked by hand.
JVM_FIXTURES = {"spark"}
AIRFLOW_FOLDERS = (
    "tests/acceptance/",
    "tests/airflow/",
    "tests/annex/alerts/",
    "tests/annex/partitions/",
)


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
