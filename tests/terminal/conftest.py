"""The command line in this process, on the installation of one test."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from weir.settings import Settings
from weir.terminal.__main__ import main


class Done(NamedTuple):
    """What a command returned and printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one value that the command printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Return the values that the command printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def weir(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Done]:
    """Return `weir(...)`, which runs what a person types in the folder of an installation."""
    (tmp_path / "weir.toml").write_text("state = '.'\nreader_lease = 30\n")
    monkeypatch.setenv("WEIR_DATABASE", settings.database)
    monkeypatch.delenv("WEIR_CONFIG", raising=False)
    for name in ("WEIR_CONFIG", "PYTHONPATH", "PYSPARK_SUBMIT_ARGS"):  # to be restored afterwards
        monkeypatch.setenv(name, os.environ.get(name, ""))
        if name != "PYTHONPATH":
            monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Done:
        capsys.readouterr()
        status = main(words)
        return Done(status, *capsys.readouterr())

    return run
