"""Jobs that work with a Spark that is there: it is killed, frozen, or the network between fails,
and each event is delivered once all the same."""

import itertools
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import weir
from tests.crash.functions import FOLDER, STREAM
from tests.crash.jobs import Process, process, wait_for, write_config
from tests.crash.proxy import Proxy
from tests.spark.connect_server import Server, connect_server
from weir.operations.jobs import ACTIONS
from weir.programs.store import StreamStore
from weir.settings import Settings

pytestmark = pytest.mark.jvm
EVENTS, GROUP = 200, "warm"


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """Where functions in Spark's workers say that they are there, and wait."""
    (tmp_path / "waiting").mkdir()
    return tmp_path / "waiting"


@pytest.fixture
def server(tmp_path: Path, waiting: Path) -> Iterator[Server]:
    with connect_server(tmp_path, WEIR_TEST_WAIT=str(waiting)) as server:
        yield server


@pytest.fixture
def store(settings: Settings) -> Iterator[StreamStore]:
    with weir.open(settings=settings) as store:
        store.create_stream("s/in", routing_key="k", segments=3)
        store.create_stream(STREAM, routing_key="k")
        store.append("s/in", [{"k": f"key {n % 17}", "n": n} for n in range(EVENTS)])
        store.create_reader_group(GROUP, ["s/in"])
        yield store


def running(store: StreamStore, spark: str, attempt: int = 1) -> AbstractContextManager[Process]:
    """The job that copies all events, in a process of its own, as a task of Airflow runs it."""
    run = {"dag_id": "weir", "run_id": "warm", "task_id": "process", "try_number": attempt}
    arguments = {
        "reader_group": GROUP, "function": "tests.crash.functions:waiting",
        "outputs": [f"stream:{STREAM}", f"parquet:{FOLDER}"],
    }  # fmt: skip
    command = [sys.executable, ACTIONS["process"].file, "--run", json.dumps(run), "--arguments",
               json.dumps(arguments)]  # fmt: skip
    return process(command, write_config(store.settings, spark=spark))


def assert_exactly_once(store: StreamStore) -> None:
    """Each event was copied once, to the stream and to the folder."""
    assert sorted(store.read(STREAM)["n"].to_pylist()) == list(range(EVENTS))
    sql = text("SELECT path FROM parquet_outputs WHERE reader_group = :g")
    folders = store.database.transaction(lambda c: c.execute(sql, {"g": GROUP}).scalars().all())
    files = [file for folder in folders for file in Path(folder).rglob("*.parquet")]
    found = [n for file in files for n in pq.ParquetFile(file).read(["n"])["n"].to_pylist()]
    assert sorted(found) == list(range(EVENTS))


def test_a_server_killed_in_the_middle_fails_its_jobs_with_a_sentence_and_their_retries_finish(
    store: StreamStore, server: Server, waiting: Path
) -> None:
    with running(store, server.address) as job:
        wait_for("a worker", (waiting / "here").exists)
        server.kill()
        server.start()
        assert job.wait() == 1, "another try may succeed"
        assert "the Spark that this works with has ended" in job.said
    (waiting / "go").touch()
    with running(store, server.address, attempt=2) as job:
        assert job.wait() == 0, job.said
    assert_exactly_once(store)


def test_a_server_that_is_not_there_is_named_and_the_job_may_be_tried_again(
    store: StreamStore, server: Server, waiting: Path
) -> None:
    server.kill()
    with running(store, server.address) as job:
        assert job.wait() == 1
        assert f"{server.port}, can't be reached" in job.said
    (waiting / "go").touch()
    server.start()
    with running(store, server.address, attempt=2) as job:
        assert job.wait() == 0, job.said
    assert_exactly_once(store)


def test_a_job_goes_on_when_a_frozen_server_does(
    store: StreamStore, server: Server, waiting: Path
) -> None:
    with running(store, server.address) as job:
        wait_for("a worker", (waiting / "here").exists)
        server.signal(signal.SIGSTOP)
        (waiting / "go").touch()
        time.sleep(5)
        assert job.running()
        server.signal(signal.SIGCONT)
        assert job.wait() == 0, job.said
    assert_exactly_once(store)


def test_a_job_goes_on_over_a_network_that_fails_again_and_again(
    store: StreamStore, server: Server, waiting: Path
) -> None:
    (waiting / "go").touch()
    fates = itertools.cycle(["fine", "fine", "before", "fine", "after"])
    proxy = Proxy(server.port, fates, at=b"ExecutePlan|ReattachExecute|Config|AnalyzePlan")
    try:
        with running(store, f"sc://127.0.0.1:{proxy.port}") as job:
            assert job.wait() == 0, job.said
    finally:
        proxy.close()
    assert proxy.cuts
    assert_exactly_once(store)


def test_a_job_that_is_killed_leaves_nothing_running_and_another_reader_takes_over(
    store: StreamStore, server: Server, waiting: Path
) -> None:
    with running(store, server.address) as job:
        wait_for("a worker", (waiting / "here").exists)
        job.kill()
    (waiting / "go").touch()
    with running(store, server.address, attempt=2) as job:
        assert job.wait() == 0, job.said
    assert_exactly_once(store)
