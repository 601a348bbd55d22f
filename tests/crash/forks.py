"""Processes forked from the tests' own: real ones to stop and to kill, which start at once."""

import contextlib
import faulthandler
import os
import signal
import traceback
from collections.abc import Callable, Iterator


class Child:
    """A process that does some work and ends. It must open connections of its own."""

    def __init__(self, work: Callable[[], str | None], seconds: int = 300) -> None:
        """`seconds`: how long it may live. What `work` returns, or raises, it has `said`."""
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _live(work, seconds, writing)
        os.close(writing)
        self._pipe = os.fdopen(reading)
        self._ended: tuple[int, str] | None = None

    def signal(self, number: int) -> None:
        """Send a signal to the process, to stop it, continue it or kill it."""
        if self._ended is None:
            os.kill(self.pid, number)

    def wait(self) -> tuple[int, str]:
        """Wait until the process ends. Return its exit status (negative: the signal that killed it)
        and what it has said."""
        if self._ended is None:
            said = self._pipe.read()
            _, status = os.waitpid(self.pid, 0)
            self._pipe.close()
            self._ended = os.waitstatus_to_exitcode(status), said
        return self._ended

    def alive(self) -> bool:
        """Return whether the process has not ended yet."""
        return (
            self._ended is None
            and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        )


def _live(work: Callable[[], str | None], seconds: int, writing: int) -> None:
    """Do the work of the process and end it, without cleaning up anything of its parent's. Told by
    SIGUSR1, and before its time is over, it prints the stacks of all its threads."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    faulthandler.dump_traceback_later(max(1, seconds - 5))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    status = 1
    try:
        os.write(writing, (work() or "").encode())
        status = 0
    except BaseException:
        os.write(writing, traceback.format_exc().encode())
    finally:
        os._exit(status)


@contextlib.contextmanager
def children() -> Iterator[list[Child]]:
    """Yield a list of processes, none of which outlives the block."""
    started: list[Child] = []
    try:
        yield started
    finally:
        for child in started:
            if child.alive():
                child.signal(signal.SIGKILL)
            child.wait()
