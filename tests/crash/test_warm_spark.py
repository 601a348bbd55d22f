"""Jobs that work with a Spark that is there: it is killed, frozen, or the network between fails,
and each event is delivered once all the same."""

import itertools
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import weir
from tests.crash.functions import FOLDER, STREAM
from tests.crash.jobs import Process, process, wait_for, write_config
from tests.crash.proxy import Proxy
from tests.spark.connect_server import Server, connect_server
from tests.spark.standalone import standalone
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


def running(
    store: StreamStore, spark: str, attempt: int = 1, function: str = "waiting", **given: object
) -> AbstractContextManager[Process]:
    """The job that copies all events, in a process of its own, as a task of Airflow runs it; or
    with arguments that are given, one that appends files."""
    name, group = "ingest" if given else "process", GROUP if function == "waiting" else function
    run = {"dag_id": "weir", "run_id": f"{group} {given}", "task_id": name, "try_number": attempt}
    arguments = given or {
        "reader_group": group, "function": f"tests.crash.functions:{function}",
        "outputs": [f"stream:{STREAM}", f"parquet:{FOLDER}"],
    }  # fmt: skip
    command = [sys.executable, ACTIONS[name].file, "--run", json.dumps(run), "--arguments",
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


@pytest.mark.release
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


@pytest.mark.release
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


@pytest.mark.release
def test_a_function_that_ends_its_process_fails_its_own_job_alone(
    store: StreamStore, waiting: Path, tmp_path: Path
) -> None:
    with connect_server(tmp_path, "local[6]", WEIR_TEST_WAIT=str(waiting)) as server:
        fails_alone(store, server, waiting)
    assert_exactly_once(store)


def fails_alone(store: StreamStore, server: Server, waiting: Path) -> None:
    """Run a job whose function ends its process beside one that works, with cores for both."""
    store.create_reader_group("ending", ["s/in"])
    with running(store, server.address) as other:
        wait_for("a worker", (waiting / "here").exists)
        with running(store, server.address, function="ending") as job:
            assert job.wait() != 0
            assert "Python worker exited" in job.said
        (waiting / "go").touch()
        assert other.wait() == 0, other.said


@pytest.mark.release
def test_twenty_jobs_at_once_share_a_server_with_memory_for_few(
    store: StreamStore, tmp_path: Path
) -> None:
    for job in range(20):
        lines = [f"key {n % 7},{1000 * (job + 1) + n}" for n in range(1000)]
        Path(store.settings.input_roots[0], f"{job}.csv").write_text("\n".join(["k,n", *lines]))
    with ExitStack() as block:
        small = block.enter_context(
            connect_server(tmp_path, SPARK_SUBMIT_OPTS="-Xmx400m -XX:+UseSerialGC")
        )
        jobs = [
            block.enter_context(
                running(store, small.address, stream="s/in", files=[f"{job}.csv"], engine="spark")
            )
            for job in range(20)
        ]
        left = [job for job, one in enumerate(jobs) if one.wait(900) != 0]
        for job in left:  # as Airflow does, when the others have ended
            files = [f"{job}.csv"]
            with running(
                store, small.address, attempt=2, stream="s/in", files=files, engine="spark"
            ) as again:
                assert again.wait() == 0, again.said
    wanted = [*range(EVENTS), *(1000 * (job + 1) + n for job in range(20) for n in range(1000))]
    assert sorted(store.read("s/in")["n"].to_pylist()) == sorted(wanted)


@pytest.mark.release
def test_a_server_on_a_cluster_of_two_workers_runs_jobs(
    store: StreamStore, waiting: Path, tmp_path: Path
) -> None:
    (waiting / "go").touch()
    (tmp_path / "cluster").mkdir()
    with standalone(tmp_path / "cluster") as cluster:
        options = f"--master {cluster.master} --conf spark.executor.memory=512m pyspark-shell"
        more = {"PYSPARK_SUBMIT_ARGS": options, "WEIR_TEST_WAIT": str(waiting)}
        with (
            connect_server(tmp_path, cluster.master, **more) as server,
            running(store, server.address) as job,
        ):
            assert job.wait() == 0, job.said
    assert_exactly_once(store)
