"""The jobs on a Spark standalone cluster, started and configured as docker-compose.yaml does it."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from tests.compose_file import REPOSITORY, SERVICES, environment_of, make_secrets, write_entry
from weir.job import job_path
from weir.local.ports import free_port
from weir.names import stream_name
from weir.reader_groups.groups import create_reader_group
from weir.settings import Settings
from weir.storage import Database

# Python functions called by the executors: they must find the module where they run.
FUNCTIONS = """
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

def twice(amount):
    return 2 * amount

def doubled(events):
    return events.select("customer", F.udf(twice, LongType())("amount").alias("amount"))
"""
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass
class Cluster:
    """A master and a worker, and the folders that stand for their containers."""

    root: Path
    port: int
    web: dict[str, int]

    @property
    def functions(self) -> Path:
        """The folder of users' functions, which the worker sees as well."""
        return self.root / "functions"

    def state(self, service: str = "spark-master") -> dict[str, Any]:
        """What its health check reads."""
        with _open(f"http://127.0.0.1:{self.web[service]}/json/", timeout=10) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def environment(self, service: str) -> dict[str, str]:
        """The variables of a service's processes, on this machine."""
        environ = {**os.environ, **environment_of(service, self.root / service)}
        return environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{REPOSITORY / 'plugins'}{os.pathsep}{self.functions}",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
            "SPARK_WORKER_CORES": "3",  # more than one job may take
        }

    def start(self, service: str, secrets: Path) -> "subprocess.Popen[bytes]":
        """Start a service by its own command, through the entry script of its image."""
        command = [self._here(word, service) for word in SERVICES[service]["command"]]
        entry = write_entry(service, self.root / service, secrets)
        with (self.root / f"{service}.log").open("wb") as log:
            return subprocess.Popen(
                ["/bin/sh", str(entry), *command],
                cwd=REPOSITORY,
                env=self.environment(service),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _here(self, word: str, service: str) -> str:
        if word == "/tmp/spark":  # noqa: S108  # the container's
            return str(self.root / "work")
        web_port = SERVICES[service]["healthcheck"]["test"][-1].split(":")[-1].split("/")[0]
        if word == web_port:
            return str(self.web[service])
        return word.replace("spark-master", "127.0.0.1").replace("7077", str(self.port))

    def wait(self, processes: list["subprocess.Popen[bytes]"]) -> None:
        """Until the master knows the worker."""
        end = time.monotonic() + 60
        while True:
            with suppress(OSError, ValueError):  # it listens before it answers
                if self.state()["aliveworkers"] == 1:
                    return
            ended = any(process.poll() is not None for process in processes)
            if ended or time.monotonic() > end:
                logs = [path.read_text()[-3000:] for path in self.root.glob("*.log")]
                pytest.fail("the cluster does not start:\n" + "\n".join(logs))
            time.sleep(0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cluster")
    web = {"spark-master": free_port(), "spark-worker": free_port()}
    cluster = Cluster(root, free_port(), web)
    (cluster.functions / "shop").mkdir(parents=True)
    (cluster.functions / "shop" / "__init__.py").write_text(FUNCTIONS)
    secrets = make_secrets(root)
    write_entry("scheduler", root / "scheduler", secrets)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.extend(cluster.start(service, secrets) for service in web)
        cluster.wait(processes)
        yield cluster
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass
class Submitter:
    """Submits jobs to the cluster as the scheduler's container does."""

    cluster: Cluster
    settings: Settings

    def __call__(self, job: str, **arguments: Any) -> "subprocess.CompletedProcess[str]":
        root = self.cluster.root / "scheduler"
        environ = self.cluster.environment("scheduler") | {
            "WEIR_DATABASE": self.settings.database,
            "WEIR_WAREHOUSE": self.settings.warehouse,
            "WEIR_INPUT_ROOTS": self.settings.input_roots[0],
            "WEIR_OUTPUT_ROOTS": self.settings.output_roots[0],
            "WEIR_FUNCTION_PATH": str(self.cluster.functions),
            "WEIR_FUNCTION_PACKAGES": "shop",
        }
        words = ["spark-submit", "--master", f"spark://127.0.0.1:{self.cluster.port}"]
        words += [job_path(job), "--arguments", json.dumps(arguments)]
        return subprocess.run(
            ["/bin/sh", str(root / "entry"), *words],
            cwd=REPOSITORY,
            env=environ,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def submit(cluster: Cluster, settings: Settings) -> Submitter:
    return Submitter(cluster, settings)


def test_a_stream_is_created_filled_and_consumed_on_a_cluster(
    submit: Submitter, cluster: Cluster, settings: Settings, database: Database
) -> None:
    orders = pa.table({"customer": ["ann", "bob", None] * 100, "amount": list(range(300))})
    pq.write_table(orders, Path(settings.input_roots[0]) / "orders.parquet")

    done = submit(
        "create_stream",
        stream="shop/orders",
        routing_key="customer",
        segments=4,
        on_missing_key="spread",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = submit("ingest", stream="shop/orders", paths=["orders.parquet"])
    assert done.returncode == 0, done.stdout + done.stderr
    create_reader_group(database, "doubling", [stream_name("shop/orders")], request_id="test")
    done = submit(
        "process", reader_group="doubling", function="shop:doubled", outputs=["parquet:doubled"]
    )
    assert done.returncode == 0, done.stdout + done.stderr

    recorded = """SELECT (SELECT events_appended FROM streams), (SELECT sum(events) FROM data_file),
        (SELECT unread_events FROM lag), (SELECT count(*) FROM job_run WHERE state = 'succeeded')"""
    row = database.transaction(lambda c: c.execute(text(recorded)).one())
    assert tuple(row) == (300, 300, 0, 3)
    path = Path(settings.output_roots[0]) / "doubled"
    doubled = pyarrow.dataset.dataset(path, partitioning="hive", exclude_invalid_files=True)
    assert sorted(doubled.to_table(columns=["amount"])["amount"].to_pylist()) == [
        2 * amount for amount in range(300)
    ]

    ran = cluster.state()["completedapps"]
    assert {app["name"] for app in ran} >= {"weir ingest", "weir process"}
    assert all(app["cores"] == 2 for app in ran)  # of deploy.defaultCores, not the worker's three
    password = (cluster.root / "secrets" / "spark").read_text().strip()
    logs = [*cluster.root.glob("*.log"), *cluster.root.glob("work/*/*/stderr")]
    assert len(logs) >= 4
    for log in logs:  # that of an executor begins with its command
        assert password not in log.read_text(errors="replace"), log
