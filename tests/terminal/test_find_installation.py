"""What a command finds of the installation here."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal.conftest import Done
from weir.local.spark_server import SparkServer
from weir.local.state_folder import StateFolder
from weir.terminal.find_installation import find_settings


def test_a_command_finds_the_spark_that_its_installation_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path / ".weir")
    SparkServer(state).want(True)
    (state.path / "pg_service.conf").write_text("")
    (tmp_path / "weir.toml").write_text('state = ".weir"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {n: v for n, v in os.environ.items() if "WEIR" not in n})
    assert find_settings().spark == SparkServer(state).address
    SparkServer(state).want(False)
    os.environ.pop("WEIR_SPARK")
    assert find_settings().spark == ""


def test_a_job_on_a_spark_elsewhere_needs_nothing_of_the_extra_local(
    weir: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.startswith("weir.local.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.setenv("WEIR_SPARK", "sc://localhost:1")
    (tmp_path / "a.json").write_text('{"k":"a"}\n')
    typed = ("ingest", "a.json", "--stream", "s/in", "--key", "k", "--engine", "spark")
    assert "[spark_unavailable]" in weir(*typed).err
