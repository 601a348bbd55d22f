"""A server of Spark Connect in a process of its own, which knows no database."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.jobs import ROOT
from weir.local.ports import free_port

_SERVER = """
import sys
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master(sys.argv[2]).config("spark.ui.enabled", "false")
         .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
         .config("spark.connect.grpc.binding.port", sys.argv[1])
         .config("spark.sql.session.timeZone", "America/New_York").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
print("ready", flush=True)
sys.stdin.read()
"""


class Server:
    """A server that can be killed, frozen, and started again at its address."""

    def __init__(self, folder: Path, master: str = "local[2]", **environ: str) -> None:
        self._folder, self._master, self._environ = folder, master, environ
        self.port = free_port()
        self.start()

    @property
    def address(self) -> str:
        """What sessions name it by."""
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it takes sessions."""
        hidden = ("WEIR_CONFIG", "PYSPARK_GATEWAY_PORT")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(self.port), self._master],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self._folder,
            start_new_session=True,
            env={n: v for n, v in os.environ.items() if n not in hidden}
            | {"PYTHONPATH": f"{ROOT}/plugins", "PYSPARK_PYTHON": sys.executable, **self._environ},
        )  # fmt: skip
        assert self._process.stdout
        assert "ready" in (self._process.stdout.readline() or "")

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """Kill it with its workers, so that nothing of it can clean up."""
        self.signal(signal.SIGKILL)
        self._process.communicate("")

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.kill()


@contextmanager
def connect_server(folder: Path, master: str = "local[2]", **environ: str) -> Iterator[Server]:
    """Run a server in a folder during the block."""
    server = Server(folder, master, **environ)
    try:
        yield server
    finally:
        server.end()
