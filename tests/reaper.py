"""Ends what a test run leaves when it is stopped half-way: `python tests/reaper.py RUN PID`.

Every process that tests start carries the run's id in its environment. The reaper waits until the
run (the process PID) tells it to stop, or ends, gives all some seconds to clean up, and kills those
that are still there.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import IO, NoReturn

import psutil  # type: ignore[import-untyped]

VARIABLE = "WEIR_TEST_RUN"
PATIENCE = 4.0  # seconds for what is stopped to clean up after itself


class Run:
    """This test run, as its reaper sees it."""

    def __init__(self) -> None:
        identity = f"{os.getpid()}-{time.time_ns()}"
        environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
        # setproctitle, which workers use, would overwrite the environment that they are found by.
        os.environ |= {VARIABLE: identity, "SPT_NOENV": "1"}
        self._reaper = subprocess.Popen(
            [sys.executable, __file__, identity, str(os.getpid())],
            stdin=subprocess.PIPE,
            env=environ,
            start_new_session=True,  # Ctrl-C is for the run; the reaper reads the end of its input
        )

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._reaper.stdin is not None
        return self._reaper.stdin

    def stop(self, *_: object) -> NoReturn:
        """End the run as Ctrl-C does, and tell the reaper, which ends what is left some seconds
        later."""
        with contextlib.suppress(OSError):
            os.write(self._pipe.fileno(), b".")
        raise KeyboardInterrupt

    def stop_at_signals(self) -> None:
        """Let Ctrl-C and SIGTERM stop the run."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)


def left(identity: str) -> list[psutil.Process]:
    """Return the processes of a run, without the run itself."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.environ().get(VARIABLE) == identity
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def main(identity: str, run: int) -> None:
    controller = psutil.Process(run)  # made now: its pid may be another process's later
    os.read(sys.stdin.fileno(), 1)
    end = time.monotonic() + PATIENCE
    while (processes := left(identity)) and time.monotonic() < end:
        time.sleep(0.2)
    end = time.monotonic() + PATIENCE
    while processes and time.monotonic() < end:  # one that waits for a disk cannot be killed
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.2)
        processes = left(identity)
    with contextlib.suppress(psutil.NoSuchProcess):
        try:
            controller.wait(PATIENCE)
        except psutil.TimeoutExpired:
            controller.kill()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
