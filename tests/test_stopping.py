"""A test run that is stopped half-way leaves no process behind within ten seconds."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.reaper import VARIABLE, left
from weir.local import processes

pytestmark = [
    pytest.mark.release, pytest.mark.jvm, pytest.mark.airflow, pytest.mark.timeout(600),
]  # fmt: skip
ROOT = Path(__file__).parents[1]
SECONDS = 10


def ctrl_c(run: "subprocess.Popen[bytes]") -> None:
    os.killpg(run.pid, signal.SIGINT)


def sigterm(run: "subprocess.Popen[bytes]") -> None:
    run.terminate()


def sigkill(run: "subprocess.Popen[bytes]") -> None:
    run.kill()


def servers(folder: Path) -> list[psutil.Process]:
    """The Postgres servers whose state is below a folder."""
    homes = [json.loads(path.read_text()).get("home") for path in folder.rglob("postgres.json")]
    return [one for home in homes if home for one in processes.working_in(Path(home) / "data")]


def alive(process: psutil.Process) -> bool:
    return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE


def identity_of(run: "subprocess.Popen[bytes]") -> str:
    """The id that the processes of a run carry; empty before there is one."""
    for process in psutil.Process(run.pid).children():
        if VARIABLE in (environ := process.environ()):
            return str(environ[VARIABLE])
    return ""


def wait(seconds: float, found: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        time.sleep(0.2)
    return found()


@pytest.mark.parametrize(
    ("stop", "tests", "program"),
    [
        (ctrl_c, ["tests/spark/test_read.py", "tests/controller"], "java"),
        (sigkill, ["tests/spark/test_read.py", "tests/controller"], "java"),
        (sigterm, ["tests/acceptance/test_private.py", "tests/spark/test_read.py"], "airflow"),
    ],
)
def test_a_run_that_is_stopped_leaves_nothing_behind(
    tmp_path: Path,
    stop: Callable[["subprocess.Popen[bytes]"], None],
    tests: list[str],
    program: str,
) -> None:
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *tests]
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    run = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert wait(60, lambda: bool(identity_of(run)))
        identity = identity_of(run)

        def running() -> bool:
            there = [" ".join(process.cmdline()) for process in left(identity)]
            return bool(servers(tmp_path)) and any(program in words for words in there)

        assert wait(240, running), "the tests start nothing"
        known = servers(tmp_path)
        stop(run)
        gone = wait(SECONDS, lambda: not left(identity) and not any(map(alive, known)))
        assert gone, [left(identity), *filter(alive, known)]
        assert run.wait(SECONDS) != 0
    finally:
        run.kill()
        run.wait()
