"""docs/testing.md says in which tier every test runs."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distribution import TOGETHER, unit_of
from tests.tiers import COLLECTED, tier_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "testing.md").read_text()


def table(heading: str) -> Iterator[list[str]]:
    """The rows of the table under a heading, without its first two."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def promised() -> dict[str, set[str]]:
    """The tiers of each folder and file of the table."""
    return {
        place: set(tiers.split(", "))
        for _, places, tiers in table("Which promise is held where")
        for place in re.findall(r"`(tests/[^`]*)`", places)
    }


def place_of(file: str) -> str:
    """Return the most special folder or file of the table that holds a test."""
    return max((place for place in promised() if file.startswith(place)), key=len)


def in_part() -> set[str]:
    """The files of which `make test` leaves tests and cases to a release."""
    rows = table("Files that `make test` plays in part")
    return {file for files, *_ in rows for file in re.findall(r"`(tests/[^`]*)`", files)}


def collected(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests of the files of this run, also those that it does not run."""
    return request.config.stash[COLLECTED]


def files_of(items: list[pytest.Item]) -> set[str]:
    return {item.nodeid.split("::")[0] for item in items}


def function_of(item: pytest.Item) -> str:
    return item.nodeid.split("[")[0]


def test_every_file_with_tests_is_in_the_table_and_every_row_is_there() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(map(place_of, files)) == promised().keys()


def test_every_test_runs_in_the_tiers_that_the_table_says(request: pytest.FixtureRequest) -> None:
    items = collected(request)
    found: dict[str, set[str]] = defaultdict(set)
    for item in items:
        found[place_of(item.nodeid.split("::")[0])].add(tier_of(item))
    on_disk: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = str(path.relative_to(ROOT))
        on_disk[place_of(name)].add(name)
    files = files_of(items)
    for place, tiers in found.items():
        assert tiers <= promised()[place], f"{place}: the table says {promised()[place]}"
        if on_disk[place] <= files:
            assert tiers == promised()[place], f"{place}: the table says {promised()[place]}"


def test_every_test_outside_of_ci_is_named(request: pytest.FixtureRequest) -> None:
    items = collected(request)
    files = files_of(items)
    told = {
        (name, tier)
        for names, tier, _ in table("Tests outside `make test`")
        for name in re.findall(r"`(tests/[^`]*)`", names)
        if name.split("::")[0] in files
    }
    whole = {name for name, _ in told if "::" not in name}
    left = {
        (file if file in whole else function_of(item), tier)
        for item in items
        if (tier := tier_of(item)) in ("release", "soak")
        and ((file := item.nodeid.split("::")[0]) not in in_part() or tier == "soak")
    }
    assert told == left
    for item in items:
        if item.nodeid.split("::")[0] in whole:
            assert tier_of(item) in ("release", "soak"), item.nodeid


def test_each_file_that_is_played_in_part_has_both(request: pytest.FixtureRequest) -> None:
    tiers: dict[str, set[bool]] = defaultdict(set)
    for item in collected(request):
        tiers[item.nodeid.split("::")[0]].add(tier_of(item) == "release")
    for file in in_part() & tiers.keys():
        assert tiers[file] == {True, False}, file


def test_what_uses_the_shared_session_runs_on_its_worker(request: pytest.FixtureRequest) -> None:
    for item in collected(request):
        if "spark" in getattr(item, "fixturenames", ()):
            assert unit_of(item.nodeid) == "Spark", f"{item.nodeid} would start a second JVM"


def test_what_runs_together_exists() -> None:
    for places in TOGETHER.values():
        for place in places:
            assert (ROOT / place).exists(), place
