"""What a command finds of the installation here."""

import os
from pathlib import Path

import pytest

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
