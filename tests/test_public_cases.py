"""The tests that docs/public-cases.md names are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_each_case_names_tests_that_are_there() -> None:
    rows = re.findall(r"^\| (P\d+) .*$", (ROOT / "docs/public-cases.md").read_text(), re.MULTILINE)
    assert len(rows) == len(set(rows)) == 30
    for line in (ROOT / "docs/public-cases.md").read_text().splitlines():
        if not line.startswith("| P"):
            continue
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", line)
        assert named, line
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"
