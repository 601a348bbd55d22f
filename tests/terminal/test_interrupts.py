"""Ctrl-C and SIGTERM end a command with one line, and with the status of that signal."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.jobs import wait_for
from tests.terminal.conftest import Done

REPOSITORY = Path(__file__).parents[2]
SLOW = """import pathlib, time
pathlib.Path("started").touch()
time.sleep(600)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_is_one_line_and_its_own_status(
    weir: Callable[..., Done], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    assert weir("create", "shop/orders", "--key", "customer").status == 0
    assert weir("create-reader-group", "totals", "--streams", "shop/orders").status == 0
    (tmp_path / "slow_module.py").write_text(SLOW)
    typed = ["process", "totals", "slow_module:totals", "--output", "parquet:totals"]
    started = subprocess.Popen(
        [sys.executable, "-m", "weir.terminal", *typed],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "plugins")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for("its start", (tmp_path / "started").exists)
    started.send_signal(number)
    out, err = started.communicate(timeout=300)
    assert (started.returncode, out, err.splitlines()) == (status, "", ["weir: interrupted"])
