"""What measures is what people have: nothing that tests set for themselves reaches it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
OPTIONS = """
import json
from pathlib import Path
from typing import Any
from benchmarks.jvm import as_a_job, job_session, options_in, options_of, plain_session
{session}
print(json.dumps([options_of(spark), options_in(as_a_job(Path("state")))]))
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


@pytest.mark.jvm
def test_the_session_of_the_figures_has_the_options_of_a_job(tmp_path: Path) -> None:
    ran, job = said(OPTIONS.format(session="spark = job_session(Path('state'))"), home=tmp_path)
    assert "-XX:+UseSerialGC" in job
    assert set(job.split()) <= set(ran.split())
    assert "TieredStopAtLevel" not in ran


@pytest.mark.jvm
@pytest.mark.release
def test_a_session_with_sparks_own_defaults_has_none_of_them(tmp_path: Path) -> None:
    ran, job = said(OPTIONS.format(session="spark = plain_session()"), home=tmp_path)
    assert set(job.split()) & set(ran.split()) == set()
