"""The Spark Connect server of one state folder: where jobs run without waiting for Spark's start.

`weir.spark.base.serve` is its process, which starts the JVM anew when that dies. It listens on
127.0.0.1, and to who has the token, which is in the state folder and in the environment of jobs.
"""

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from weir.errors import Unavailable
from weir.local import ports, processes
from weir.local.spark_address import GIVEN_BY, address, known
from weir.local.state_folder import StateFolder

log = logging.getLogger("weir.local")
IDLE = 600.0  # seconds after which a server ends that a job of a terminal has started
_PORT = 15002
_PATIENCE = 180.0  # for a slow and busy machine; 5 s are usual
_DRAINED = 15.0  # somewhat more than it waits itself for what runs
# What has used up its memory ends, and is started anew: it has lost some of its threads.
_BOUNDS = "-XX:+ExitOnOutOfMemoryError -XX:MaxMetaspaceSize=512m"


class SparkServer:
    """The server of one state folder. Any process may call `start` and `stop`, repeatedly."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._id = f"{state.identity}-spark"

    @property
    def decided(self) -> bool:
        """Return whether somebody has said if jobs are to find it."""
        return bool(self._state.read("spark.json"))

    @property
    def wanted(self) -> bool:
        """Return whether jobs are to find it."""
        return bool(known(self._state)["port"])

    @property
    def address(self) -> str:
        """Return what the setting `spark` of its jobs is."""
        return address(self.port)

    @property
    def port(self) -> int:
        """Return the port at which it listens, or would listen; 0: jobs are to find none."""
        return int(known(self._state)["port"])

    def running(self) -> int | None:
        """Return the pid of its process, or None if it does not run."""
        main = self._main()
        return main.pid if main else None

    def want(self, wanted: bool) -> None:
        """Say whether jobs are to find it from now on. If not, it is stopped."""
        if not wanted:
            self.stop()
        with self._state.lock("spark"), ports.reserving() as reserve:
            if wanted != self.wanted or not self.decided:
                self._remember(port=reserve(_PORT) if wanted else 0)

    def start(self, environ: Mapping[str, str], idle: float = 0.0) -> None:
        """Start it unless it runs, and wait until it listens. `environ`: that of jobs. `idle`:
        after so many seconds without work it ends by itself.

        Raises Unavailable with the end of its log if it can't be started."""
        with self._state.lock("spark"), ports.reserving() as reserve:
            if self._main() and not idle and known(self._state)["idle"]:
                self._end()  # it would end while others rely on it
            if not self._main():
                processes.kill(self._ours)  # a JVM or Python that outlived it has the port
                self._launch(reserve(self.port or _PORT), environ, idle)
            self._wait()

    def stop(self) -> None:
        """Stop it, when what runs has ended or after some seconds, and make sure that no process is
        left."""
        with self._state.lock("spark"):
            self._end()

    def _end(self) -> None:
        tree = []
        if main := self._main():
            tree = main.children(recursive=True)  # a process that exits has no environment any more
            processes.end([main], _DRAINED)
        processes.kill(lambda: [*self._ours(), *filter(processes.alive, tree)])

    def _launch(self, port: int, environ: Mapping[str, str], idle: float) -> None:
        command = [sys.executable, "-P", "-m", "weir.spark.base.serve", str(port), str(idle)]
        more = {
            "WEIR_STACK_ID": self._id,
            "SPARK_SUBMIT_OPTS": f"{_BOUNDS} {environ.get('SPARK_SUBMIT_OPTS', '')}".strip(),
            GIVEN_BY: self._state.secret("spark"),
        }
        log.info("starting Spark Connect")
        with self._state.open_log("spark") as output:
            process = subprocess.Popen(
                command,
                env={**environ, **more},
                cwd=self._state.folder("spark"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C must reach only us
            )
        processes.appear(process)
        self._remember(port=port, pid=process.pid, idle=idle)

    def _wait(self) -> None:
        begun = time.monotonic()
        while not _listens(self.port):
            waited = time.monotonic() - begun
            if not self._main() or waited > _PATIENCE:
                why = "has ended" if waited <= _PATIENCE else f"is not ready after {waited:.0f} s"
                processes.kill(self._ours)
                raise Unavailable(
                    "spark_unavailable",
                    f"Spark Connect {why}; correct what its log says, and run `weir up` again. "
                    f"{self._state.last_words('spark')}",
                )
            time.sleep(0.1)

    def _remember(self, **values: float) -> None:
        self._state.write("spark.json", known(self._state) | values)

    def _ours(self) -> list[Any]:
        return processes.carrying("WEIR_STACK_ID", self._id)

    def _main(self) -> Any:
        pid = known(self._state)["pid"]
        return next((process for process in self._ours() if process.pid == pid), None)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
