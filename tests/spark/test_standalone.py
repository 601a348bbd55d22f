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

from tests.compose_file import (
    PG_SERVICE,
    REPOSITORY,
    SERVICES,
    environment_of,
    make_secrets,
    write_entry,
)
from tests.conftest import TestDatabase
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.ports import free_port
from weir.model.names import stream_name
from weir.operations.jobs import ACTIONS
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.settings import Settings

pytestmark = [pytest.mark.jvm, pytest.mark.release]

# Python functions called by the executors: they must find the module where they run.
FUNCTIONS = """
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

def twice(amount):
    return 2 * amount

def slowly(amount):
    import time
    time.sleep(0.02)
    return amount

def slow(events):
    return events.select("customer", F.udf(slowly, LongType())("amount").alias("amount"))

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
        end = time.monotonic() + 240  # a busy machine starts JVMs slowly
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
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: EmbeddedPostgres
) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cluster")
    web = {"spark-master": free_port(), "spark-worker": free_port()}
    cluster = Cluster(root, free_port(), web)
    (cluster.functions / "shop").mkdir(parents=True)
    (cluster.functions / "shop" / "__init__.py").write_text(FUNCTIONS)
    secrets = make_secrets(root)
    (secrets / "weir_app").write_text(postgres_server.state.secret("weir_app"))
    write_entry("scheduler", root / "scheduler", secrets)
    address = f"host=127.0.0.1\nport={postgres_server.port}"
    for service in ("scheduler", *web):
        (root / service).mkdir(exist_ok=True)
        found = PG_SERVICE.replace("host=postgres", address)
        (root / service / "pg_service.conf").write_text(found)
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
    database: str

    def __call__(self, job: str, **arguments: Any) -> "subprocess.CompletedProcess[str]":
        """Run a job to its end."""
        process = self.start(job, {}, arguments)
        said, _ = process.communicate(timeout=300)
        return subprocess.CompletedProcess([], process.returncode, said, "")

    def start(
        self, job: str, run: dict[str, Any], arguments: dict[str, Any], *options: str
    ) -> "subprocess.Popen[str]":
        """Start a job; `options` are for spark-submit."""
        root = self.cluster.root / "scheduler"
        environ = self.cluster.environment("scheduler") | {
            "WEIR_DATABASE": f"service=weir dbname={self.database}",
            "WEIR_WAREHOUSE": self.settings.warehouse,
            "WEIR_INPUT_ROOTS": self.settings.input_roots[0],
            "WEIR_OUTPUT_ROOTS": self.settings.output_roots[0],
            "WEIR_FUNCTION_PATH": str(self.cluster.functions),
            "WEIR_FUNCTION_PACKAGES": "shop",
        }
        words = ["spark-submit", "--master", f"spark://127.0.0.1:{self.cluster.port}"]
        words += [*options, ACTIONS[job].file, "--arguments", json.dumps(arguments)]
        words += ["--run", json.dumps(run)]
        return subprocess.Popen(
            ["/bin/sh", str(root / "entry"), *words],
            cwd=REPOSITORY,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def submit(cluster: Cluster, settings: Settings, test_database: TestDatabase) -> Submitter:
    return Submitter(cluster, settings, test_database.name)


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
    csv = "".join(f"{name},{amount}\n" for name, amount in [("eve", 300), ("", 301)] * 50)
    (Path(settings.input_roots[0]) / "more.csv").write_text("customer,amount\n" + csv)
    for name in ("orders.parquet", "more.csv"):  # by the tasks of Spark: small files need none
        done = submit("ingest", stream="shop/orders", files=[name], engine="spark")
        assert done.returncode == 0, done.stdout + done.stderr
    create_reader_group(database, "doubling", [stream_name("shop/orders")], request_id="test")
    done = submit(
        "process", reader_group="doubling", function="shop:doubled", outputs=["parquet:doubled"]
    )
    assert done.returncode == 0, done.stdout + done.stderr

    recorded = """SELECT (SELECT events_appended FROM streams), (SELECT sum(events) FROM data_file),
        (SELECT unread_events FROM lag), (SELECT count(*) FROM job_run WHERE state = 'succeeded')"""
    row = database.transaction(lambda c: c.execute(text(recorded)).one())
    assert tuple(row) == (400, 400, 0, 4)
    path = Path(settings.output_roots[0]) / "doubled"
    doubled = pyarrow.dataset.dataset(path, partitioning="hive", exclude_invalid_files=True)
    assert sorted(doubled.to_table(columns=["amount"])["amount"].to_pylist()) == [
        *(2 * amount for amount in range(300)), *[600] * 50, *[602] * 50,
    ]  # fmt: skip

    ran = cluster.state()["completedapps"]
    assert {app["name"] for app in ran} >= {"weir ingest", "weir process"}
    assert all(app["cores"] == 2 for app in ran)  # of deploy.defaultCores, not the worker's three
    password = (cluster.root / "secrets" / "spark").read_text().strip()
    logs = [*cluster.root.glob("*.log"), *cluster.root.glob("work/*/*/stderr")]
    assert len(logs) >= 4
    for log in logs:  # that of an executor begins with its command
        assert password not in log.read_text(errors="replace"), log


def orders(submit: Submitter, settings: Settings, database: Database, group: str) -> None:
    """A stream with 300 events in four segments, and a group that has read nothing of it."""
    amounts = pa.table({"customer": [f"c{n % 40}" for n in range(300)], "amount": range(300)})
    pq.write_table(amounts, Path(settings.input_roots[0]) / "orders.parquet")
    done = submit("create_stream", stream="shop/orders", routing_key="customer", segments=4)
    assert done.returncode == 0, done.stdout
    done = submit("ingest", stream="shop/orders", files=["orders.parquet"])
    assert done.returncode == 0, done.stdout
    create_reader_group(database, group, [stream_name("shop/orders")], request_id=group)


def test_executors_write_into_a_table_with_the_secrets_of_a_worker(
    submit: Submitter, settings: Settings, database: Database, test_database: TestDatabase
) -> None:
    orders(submit, settings, database, "tables")
    owner = Database(test_database.owner_dsn, patience=5.0, connect_patience=5.0)
    for statement in (
        "CREATE SCHEMA reports",
        "CREATE TABLE reports.doubled (customer text, amount bigint)",
        "GRANT USAGE ON SCHEMA reports TO weir_publisher",
        "GRANT INSERT ON reports.doubled TO weir_publisher",
    ):
        owner.transaction(lambda c, s=statement: c.execute(text(s)))  # type: ignore[misc]
    done = submit(
        "process", reader_group="tables", function="shop:doubled", outputs=["table:reports.doubled"]
    )
    assert done.returncode == 0, done.stdout
    asked = text("SELECT count(*), sum(amount) FROM reports.doubled")
    found = owner.transaction(lambda c: c.execute(asked).one())
    owner.dispose()
    assert tuple(found) == (300, 2 * sum(range(300)))


def test_readers_that_wait_for_each_others_cores_all_end(
    submit: Submitter, settings: Settings, database: Database, cluster: Cluster
) -> None:
    """The first holds all cores until the group has read all; who waits for them holds nothing."""
    orders(submit, settings, database, "waiting")
    arguments = {
        "reader_group": "waiting", "function": "shop:slow", "outputs": ["parquet:slow"],
        "readers": 2,
    }  # fmt: skip
    run = {"dag_id": "weir_process", "run_id": "r", "task_id": "process", "try_number": 1}
    started = [
        submit.start(
            "process", run | {"map_index": index}, arguments, "--conf", "spark.cores.max=3"
        )
        for index in range(2)
    ]
    told, killed, end = set[str](), False, time.monotonic() + 300
    asked = text("SELECT coalesce(progress, '') FROM job_run WHERE state = 'running'")
    while any(process.poll() is None for process in started) and time.monotonic() < end:
        told |= set(database.transaction(lambda c: c.execute(asked).scalars().all()))
        if not killed and (running := cluster.state()["activeapps"]):
            # As the button on the master's page would; it needs no login.
            body = f"id={running[0]['id']}&terminate=true".encode()
            url = f"http://127.0.0.1:{cluster.web['spark-master']}/app/kill/"
            with suppress(OSError):
                _open(url, data=body, timeout=10).close()
            killed = True
        time.sleep(0.5)
    for process in started:
        process.kill()
    said = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert any("waiting for cores of the cluster" in one for one in told), said
    count = text("SELECT sum(events) FROM reader_batch WHERE state = 'committed'")
    assert database.transaction(lambda c: c.execute(count).scalar_one()) == 300


def test_what_driver_and_executors_send_each_other_is_encrypted(cluster: Cluster) -> None:
    for service in ("scheduler", "spark-master", "spark-worker"):
        path = cluster.root / service / "spark-conf" / "spark-defaults.conf"
        lines = [line.split(maxsplit=1) for line in path.read_text().splitlines() if line]
        known = {line[0]: line[1].strip() for line in lines if len(line) == 2}
        assert known["spark.network.crypto.enabled"] == "true", service
        assert known["spark.io.encryption.enabled"] == "true", service
        memory = {"scheduler": "1g"}.get(service, "2g")
        assert known["spark.driver.memory"] == memory, service
