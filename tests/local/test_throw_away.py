"""A test's server is gone after the test, also when the test run is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weir.local import processes
from weir.local.throw_away import throw_away_postgres

pytestmark = pytest.mark.server


def test_nothing_is_left() -> None:
    with throw_away_postgres() as postgres:
        folders = [postgres.home, postgres.state.path]
        assert postgres.psql("SHOW fsync") == "off"
    assert not any(folder.exists() for folder in folders)
    assert not processes.working_in(folders[0] / "data")


def test_nothing_is_left_by_a_run_that_is_killed() -> None:
    code = (
        "import time; from weir.local.throw_away import throw_away_postgres\n"
        "with throw_away_postgres() as p: print(p.home, p.state.path, flush=True); time.sleep(600)"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE)
    assert run.stdout is not None
    folders = [Path(word) for word in run.stdout.readline().decode().split()]
    assert processes.working_in(folders[0] / "data")
    run.send_signal(signal.SIGKILL)
    run.communicate()
    end = time.monotonic() + 300
    while any(folder.exists() for folder in folders) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(folder.exists() for folder in folders)
    assert not processes.working_in(folders[0] / "data")
