"""What measures is what people have: nothing that tests set for themselves reaches it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.rooms import PLUGINS, REPOSITORY

PROGRAMS = {"empty_job", "least_ingest"}  # which work when they are imported
MODULES = sorted(path.stem for path in (REPOSITORY / "benchmarks").glob("*.py"))
CHANGED = """
import importlib, json, os, sys
before = dict(os.environ)
for name in sys.argv[1:]:
    importlib.import_module(f"benchmarks.{name}")
changed = sorted(dict(before.items() ^ os.environ.items()))
print(json.dumps([changed, sorted(name for name in sys.modules if name.endswith("conftest"))]))
"""


def said(code: str, *arguments: str, home: Path) -> list[Any]:
    """What code prints in a new process, which has nothing of this one's environment."""
    path = os.pathsep.join(map(str, (PLUGINS, REPOSITORY / "examples", REPOSITORY)))
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "HOME": str(home)},
        cwd=home, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_importing_the_benchmarks_changes_nothing_of_the_environment(tmp_path: Path) -> None:
    names = [name for name in MODULES if name not in PROGRAMS]
    assert said(CHANGED, *names, home=tmp_path) == [[], []]
