"""Find processes by a folder or a variable that they carry, because a pid may be reused."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from weir.errors import Conflict


def working_in(folder: Path) -> list[psutil.Process]:
    """Return the live processes whose current folder is this one."""
    return _which(lambda process: process.cwd() == str(folder.resolve()))


def carrying(variable: str, value: str) -> list[psutil.Process]:
    """Return the live processes that were started with this environment variable."""
    return _which(lambda process: process.environ().get(variable) == value)


def appear(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process that was started just now can be found by what it carries: while the
    kernel loads its program it has no environment."""
    with suppress(psutil.Error):
        shown = psutil.Process(process.pid)
        while alive(shown) and not shown.environ():
            time.sleep(0.001)


def _which(condition: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if condition(process) and alive(process):
                found.append(process)
        except (psutil.Error, OSError):
            pass  # it has exited, or belongs to another user
    return found


def alive(process: psutil.Process) -> bool:
    """Return whether a process lives. A zombie does not: in a container it may stay one forever."""
    try:
        return bool(process.is_running()) and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def end(processes: list[psutil.Process], patience: float) -> None:
    """Send SIGTERM to processes, and wait at most `patience` seconds until they exit."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _wait(processes, patience)


def kill(find: Callable[[], list[psutil.Process]]) -> None:
    """Send SIGKILL to the processes that `find` returns, until it returns none. Raises Conflict if
    some remain."""
    for _ in range(20):
        if not (left := find()):
            return
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        _wait(left, 0.5)
    pids = ", ".join(str(process.pid) for process in left)
    raise Conflict(
        "not_started",
        f"these processes are still running after they were killed: {pids}; stop them by hand.",
    )


def _wait(processes: list[psutil.Process], timeout: float) -> None:
    until = time.monotonic() + timeout
    while any(map(alive, processes)) and time.monotonic() < until:
        time.sleep(0.02)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM during the block, so that cleaning up after the first one
    completes."""
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
