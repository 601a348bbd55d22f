"""Keeps what tells why a test failed, and says where: the logs that were written below the run's
temporary folder while it ran, and those of its servers, whose data is deleted.

They are in a folder of the run, in one of each test: /tmp/weir-tests-<run>/<test>.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.reaper import VARIABLE
from weir.local.embedded_postgres import EmbeddedPostgres

BEGUN = pytest.StashKey[float]()
SUFFIXES = {".log", ".out", ".err"}
MOST = 20  # logs of a test, the newest


def folder_of(test: str) -> Path:
    """Return the folder for the logs of a test, which only a test that failed has."""
    name = re.sub(r"[^\w.]+", "-", test).strip("-")[-150:]
    return Path(tempfile.gettempdir(), f"weir-tests-{os.environ.get(VARIABLE, 'run')}", name)


def keep(folder: Path, log: Path, name: str) -> None:
    """Copy a log, or what there is of it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(log, folder / re.sub(r"[^\w.]+", "-", name).strip("-")[-150:])


def log_of(server: EmbeddedPostgres) -> Path:
    """Return the log of a server."""
    return server.home / "server.log"


@contextmanager
def log_kept(server: EmbeddedPostgres) -> Iterator[None]:
    """Keep the log of a server that ends with the `with`, if the `with` fails."""
    try:
        yield
    except BaseException:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if test and log_of(server).exists():
            keep(folder_of(test), log_of(server), f"postgres-{server.port}.log")
        raise


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember when a test began."""
    item.stash[BEGUN] = time.time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of a test that failed, and print where."""
    report = yield
    if report.failed:
        folder = folder_of(item.nodeid)
        for name, log in _logs(item):
            keep(folder, log, name)
        if folder.exists():
            names = sorted(path.name for path in folder.iterdir())
            report.sections.append(("logs of what the test started", f"{folder}: {names}"))
    return report


def _logs(item: pytest.Item) -> list[tuple[str, Path]]:
    """The logs that were written since a test began, and those of the servers that it was given."""
    given: dict[str, Any] = getattr(item, "funcargs", {})
    found = [
        (f"{name}.log", log_of(server))
        for name, server in given.items()
        if isinstance(server, EmbeddedPostgres) and log_of(server).exists()
    ]
    below = item.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    written = [
        (path.stat().st_mtime, path)
        for path in below.rglob("*")
        if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink()
    ]
    begun = item.stash.get(BEGUN, 0.0)
    newest = sorted(((at, path) for at, path in written if at >= begun), reverse=True)[:MOST]
    return found + [(str(path.relative_to(below)), path) for _, path in newest]
