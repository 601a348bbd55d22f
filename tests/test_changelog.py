"""CHANGELOG.md is that of the version which is built."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_newest_version_of_the_changelog_is_that_of_the_distribution() -> None:
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert versions[0] == built
