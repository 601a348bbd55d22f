"""Finding processes by what they carry, because a remembered pid may be somebody else's by now."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from weir.errors import Conflict


def working_in(folder: Path) -> list[psutil.Process]:
    """The live processes whose current folder is this one."""
    return _which(lambda process: process.cwd() == str(folder.resolve()))


def carrying(variable: str, value: str) -> list[psutil.Process]:
    """The live processes that were started with this environment variable."""
    return _which(lambda process: process.environ().get(variable) == value)


def _which(condition: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if condition(process) and _alive(process):
                found.append(process)
        except (psutil.Error, OSError):
            pass  # gone, or another user's: not ours
    return found


def _alive(process: psutil.Process) -> bool:
    """A zombie is not: in a container it may stay one for ever, because nobody asks for it."""
    try:
        return bool(process.is_running()) and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end(processes: list[psutil.Process], patience: float) -> None:
    """SIGTERM them, and wait so many seconds at most until they are gone."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _wait(processes, patience)


def kill(find: Callable[[], list[psutil.Process]]) -> None:
    """SIGKILL whatever `find` finds until it finds nothing."""
    for _ in range(20):
        if not (left := find()):
            return
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        _wait(left, 0.5)
    pids = ", ".join(str(process.pid) for process in left)
    raise Conflict(
        "processes_still_running",
        f"these processes are still running after they were killed: {pids}; stop them by hand.",
    )


def _wait(processes: list[psutil.Process], timeout: float) -> None:
    until = time.monotonic() + timeout
    while any(map(_alive, processes)) and time.monotonic() < until:
        time.sleep(0.02)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM are ignored meanwhile: for cleaning up after the first of them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
