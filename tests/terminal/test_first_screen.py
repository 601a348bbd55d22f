"""What README.md shows first, typed as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weir.local.installation import Installation

REPOSITORY = Path(__file__).parents[2]


def shown() -> list[tuple[str, str]]:
    """Return what is typed on the first screen, each with what is shown below it."""
    page = (REPOSITORY / "README.md").read_text()
    block = re.search(r"^```console.*?\n(\$ .*?)^```$", page, re.M | re.S)
    assert block
    return [
        (typed.replace("\\", "").replace("\n      ", " "), below)
        for typed, below in re.findall(
            r"^\$ (.*(?:\n {6}.*)*)\n((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE
        )
    ]


@pytest.mark.release
def test_it_prints_what_it_shows_whenever_the_first_run_is_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "weir.toml").touch()
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, module in {"python": "", "weir": " -m weir.terminal"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable}{module} "$@"\n')
        (programs / name).chmod(0o755)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "PG"))}
    environ |= {"PYTHONPATH": str(REPOSITORY / "plugins")}
    environ["PATH"] = f"{programs}:{environ['PATH']}"
    printed: list[tuple[str, str, str]] = []
    try:
        for typed, below in shown():
            if typed.startswith("cat "):
                (home / typed.removeprefix("cat ")).write_text(below)
                continue
            done = subprocess.run(
                ["bash", "-c", typed], cwd=home, env=environ,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
            )  # fmt: skip
            killed = typed.startswith("timeout") and done.returncode in (-9, 137)
            assert killed or done.returncode == 0, done.stdout
            printed.append((typed, below, done.stdout))
    finally:
        Installation(home / ".weir").remove()
    assert len(printed) > 6
    # How far the first run comes depends on the machine; what follows from it does not.
    for typed, below, said in printed[-2:]:
        assert numbers(below) == numbers(said), typed
    middle = next(said for typed, _, said in printed if typed.startswith("weir psql -c"))
    sales, amount = map(int, (numbers(middle) or ["0|0"])[-1].split("|"))
    assert 0 <= sales <= 100_000
    assert amount * 1000 == sales * 49_500


def numbers(said: str) -> list[str]:
    """Return the lines of a table, without what people see around it."""
    return [
        re.sub(r"\s+", "", line)
        for line in said.splitlines()
        if re.match(r"^\s*\d[\d |]*$", line) or line.startswith("totals ")
    ]
