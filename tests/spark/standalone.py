"""A standalone cluster of Spark whose workers each have an address, and whose executors have a
Python of the test's own."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pyspark
import pytest

from tests.crash.jobs import ROOT
from weir.local.ports import free_port

_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
_SHORT = "-XX:TieredStopAtLevel=1"  # they do not live long enough for the optimising compiler
_SPARK = Path(pyspark.__file__).parent


@dataclass
class Standalone:
    """A cluster: where its logs are, how it is named, and the processes of its services."""

    root: Path
    port: int = field(default_factory=free_port)
    web: int = field(default_factory=free_port)
    services: list[psutil.Popen] = field(default_factory=list)

    @property
    def master(self) -> str:
        """What programs name it by."""
        return f"spark://127.0.0.1:{self.port}"

    def driver(self, python: Path | str, *settings: str) -> dict[str, str]:
        """Return the environment of a program whose session is of this cluster. `python`: of the
        executors."""
        given = (f"spark.pyspark.python={python}", "spark.executor.memory=512m",
                 "spark.ui.enabled=false", "spark.driver.host=127.0.0.1",
                 f"spark.executor.extraJavaOptions={_SHORT}", *settings)  # fmt: skip
        options = " ".join(f"--conf {one}" for one in given)
        plain = {n: v for n, v in os.environ.items() if not n.startswith(("PYSPARK_", "SPARK_"))}
        return plain | {
            "PYSPARK_SUBMIT_ARGS": f"--master {self.master} {options} pyspark-shell",
            "PYTHONPATH": str(ROOT / "plugins"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def start(self, name: str, *arguments: str) -> None:
        """Start a service, whose processes find no module of this repository."""
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with (self.root / f"{name}.log").open("wb") as log:
            self.services.append(
                psutil.Popen(
                    [_SPARK / "bin" / "spark-class", *arguments], cwd=self.root, stdout=log,
                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                    env=environ | {
                        "SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": "127.0.0.1",
                        "SPARK_DAEMON_JAVA_OPTS": _SHORT,
                    },
                )
            )  # fmt: skip

    def executor(self, host: str) -> psutil.Process | None:
        """Return the executor of a worker, if it runs."""
        for service in self.services:
            for one in service.children():
                with suppress(psutil.Error):
                    words = one.cmdline()
                    if "--executor-id" in words and host in words:
                        return one
        return None

    def said(self) -> str:
        """Return the ends of all logs."""
        logs = [*self.root.glob("*.log"), *self.root.glob("work/*/*/stderr")]
        return "\n".join(f"{path}\n{path.read_text(errors='replace')[-3000:]}" for path in logs)

    def wait(self, workers: int) -> None:
        """Wait until the master knows its workers."""
        end = time.monotonic() + 240
        while time.monotonic() < end:
            with suppress(OSError), _open(f"http://127.0.0.1:{self.web}/json/", timeout=10) as page:
                if page.read().decode().replace(" ", "").count('"state":"ALIVE"') >= workers:
                    return
            time.sleep(0.2)
        pytest.fail(f"the cluster does not start:\n{self.said()}")


@contextmanager
def standalone(root: Path, workers: int = 2, cores: int = 2) -> Iterator[Standalone]:
    """Yield a cluster, whose workers have the addresses 127.0.0.1, 127.0.0.2 and so on: Spark runs
    a task twice at a time only on different ones."""
    cluster, package = Standalone(root), "org.apache.spark.deploy"
    where = ("--port", str(cluster.port), "--webui-port", str(cluster.web))
    try:
        cluster.start("master", f"{package}.master.Master", "--host", "127.0.0.1", *where)
        for number in range(1, workers + 1):
            cluster.start(
                f"worker{number}", f"{package}.worker.Worker", "--host", f"127.0.0.{number}",
                "--cores", str(cores), "--memory", "1g", "--work-dir", str(root / "work"),
                "--webui-port", "0", cluster.master,
            )  # fmt: skip
        cluster.wait(workers)
        yield cluster
    finally:
        for service in reversed(cluster.services):
            with suppress(psutil.Error):
                for one in [*service.children(recursive=True), service]:
                    with suppress(psutil.Error):
                        one.kill()
            service.wait()


def bare_python(folder: Path, *, packages: bool) -> Path:
    """Make a Python that does not find Weir, and finds installed packages only if it is to."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    if packages:
        theirs = next(path for path in map(Path, sys.path) if path.name == "site-packages")
        [site] = folder.glob("lib/python3*/site-packages")
        (site / "theirs.pth").write_text(f"{theirs}\n")  # the .pth files there do not count
    return folder / "bin" / "python"
