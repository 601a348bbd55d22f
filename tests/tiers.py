"""What tests need, by which `make` chooses them. docs/testing.md says what each tier promises."""

import pytest

# Fixtures and folders that tell; a test that needs it in another way is marked by hand.
JVM_FIXTURES = {"spark"}
AIRFLOW_FOLDERS = ("tests/acceptance/", "tests/airflow/")


def mark(item: pytest.Item) -> None:
    """Add the marks that follow from a test's fixtures, folder and kind."""
    if JVM_FIXTURES & set(getattr(item, "fixturenames", ())):
        item.add_marker("jvm")
    if item.nodeid.startswith(AIRFLOW_FOLDERS):
        item.add_marker("airflow")
    if item.get_closest_marker("hypothesis"):
        item.add_marker("random")


def tier_of(item: pytest.Item) -> str:
    """Return the first tier in which a test runs: fast, ci, release or soak."""
    marks = {one.name for one in item.iter_markers()}
    for tier in ("soak", "release"):
        if tier in marks:
            return tier
    return "ci" if marks & {"jvm", "airflow"} else "fast"
