"""The glossary's invariants name tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_invariant_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 15
    for _, _, named in rows:
        found = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", named)
        assert found, named
        for path, name in found:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
