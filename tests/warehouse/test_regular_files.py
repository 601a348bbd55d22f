"""What a path names is a file: a pipe would be waited for, and none of these can be read twice."""

import os
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import weir
from tests.raises import raises
from weir.consumers.user_functions import find_function, load_function
from weir.inputs.files import find_inputs
from weir.programs.store import StreamStore
from weir.settings import Settings
from weir.terminal.work import _certificate


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # of zeros, without an end
    except PermissionError:
        pytest.skip("only root makes devices")


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield a folder with a short name, as that of a socket must be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def store(settings: Settings, root: Path) -> Iterator[StreamStore]:
    """Yield an installation with this folder as its input root."""
    opened = weir.open(settings=replace(settings, input_roots=(str(root),)))
    yield opened
    opened.close()


DOORS: dict[str, Callable[[StreamStore, str], object]] = {
    "x.csv": lambda _, root: find_inputs(["x.csv"], [root]),
    "days/x.csv": lambda _, root: find_inputs(["days"], [root]),
    "dates/dt=2026-01-01/x.csv": lambda _, root: find_inputs(["dates"], [root]),
    "x.yaml": lambda store, _: store.apply(file="x.yaml", dry_run=True),
    "certificate.json": lambda _, root: _certificate(f"{root}/certificate.json"),
    "shop.py": lambda _, root: load_function("shop:f", ["shop"], [root]),
    "shop/__init__.py": lambda _, root: find_function("shop:f", ["shop"], [root]),
    "shop/orders.py": lambda _, root: load_function("shop.orders:f", ["shop"], [root]),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [_pipe, _socket, _device])
def test_no_door_opens_what_is_no_file(
    make: Callable[[Path], None], root: Path, store: StreamStore
) -> None:
    for name, door in DOORS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        with raises(f"file_invalid {path.name} pipe socket device"):
            door(store, str(root))
        path.unlink()


def test_a_link_to_a_pipe_is_no_file_either(root: Path) -> None:
    _pipe(root / "pipe")
    (root / "x.csv").symlink_to("pipe")
    with raises("file_invalid pipe"):
        find_inputs(["x.csv"], [str(root)])
