"""Appends on a cluster whose tasks are killed, tried again, and run twice at a time: what counts is
what the same append without any of that has written."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

import weir
from tests.crash.jobs import wait_for, write_config
from tests.digests import sum_of_rows
from tests.spark.standalone import Standalone, bare_python, standalone
from weir.database.connection import Database
from weir.settings import Settings

pytestmark = [pytest.mark.jvm, pytest.mark.release, pytest.mark.timeout(900)]
# So many rows of a task have the same key that it writes a row group long before its last row.
ROWS, TASKS = 1_800_000, 6
# Appends the same to two streams, once the executors have shown that they do not know Weir. PySpark
# asks them with the Python of the setting only under spark-submit; the appends find it themselves.
_PROGRAM = """
import sys, weir
from importlib.util import find_spec
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
found, context.pythonExec = context.pythonExec, context.getConf().get("spark.pyspark.python")
looked = context.parallelize(range(8), 8).map(lambda _: find_spec("weir") is not None)
assert not any(looked.collect()), "executors have a Weir of their own"
context.pythonExec = found
with weir.open(spark=spark) as store:
    for stream in ("s/calm", "s/troubled"):
        print(stream, flush=True)
        if sys.argv[1:] == ["frame"]:
            rows = spark.range(0, {rows}, 1, {tasks}).selectExpr(
                "IF(id % 10 = 0, 'key ' || id % 1000, 'key') AS k",
                "id AS n", "sha2(string(id), 256) AS t")
            print(store.append(stream, rows, writer_id="w", batch_id="1"))
        else:
            print(store.ingest(stream, sys.argv[1:], engine="spark"))
"""
_SPECULATION = (
    "spark.speculation=true", "spark.speculation.interval=200ms",
    "spark.speculation.quantile=0.3", "spark.speculation.multiplier=1.1",
    "spark.task.maxFailures=8",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bare_python(tmp_path_factory.mktemp("python"), packages=True)


class Troubled:
    """Troubles the executors as soon as the tasks write files below a folder, and remembers what
    was there when it did."""

    def __init__(self, cluster: Standalone, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.unfinished = set[Path]()
        self.stopped = list[psutil.Process]()

    def files(self) -> set[Path]:
        """Return the files of events that are there."""
        return {path for path in self.folder.rglob("*.parquet") if path.is_file()}

    def make(self, wait: Callable[[str, Callable[[], Any]], Any]) -> None:
        """Kill all workers of one executor, and stop those of the other, whose tasks other tries
        have to overtake. Then kill the first executor while it tries again."""
        self.unfinished = wait("files", self.files)
        killed, self.stopped = self._workers("127.0.0.1"), self._workers("127.0.0.2")
        assert killed
        assert self.stopped
        for one in self.stopped:
            one.suspend()
        for one in killed:
            one.kill()
        wait("files of the next try", lambda: self.files() - self.unfinished)
        executor = self.cluster.executor("127.0.0.1")
        assert executor
        executor.kill()

    def end(self) -> None:
        """Leave no process stopped."""
        for one in self.stopped:
            with suppress(psutil.Error):
                one.kill()

    def _workers(self, host: str) -> list[psutil.Process]:
        executor = self.cluster.executor(host)
        assert executor, self.cluster.said()
        return [worker for daemon in executor.children() for worker in daemon.children()]


def lines(path: Path) -> None:
    """Write a csv file that several tasks read."""
    with path.open("w") as file:
        file.write("k,n,t\n")
        for n in range(ROWS):
            digest = sha256(str(n).encode()).hexdigest()  # which does not compress
            file.write(f"key{'' if n % 10 else f' {n % 1000}'},{n},{digest}\n")


@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_killed_repeated_and_doubled_tasks_append_what_undisturbed_ones_do(
    kind: str, cluster: Standalone, python: Path, database: Database, settings: Settings,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    given = ["frame"]
    if kind == "csv":
        lines(Path(settings.input_roots[0]) / "many.csv")
        given = ["many.csv"]
    with weir.open(settings=settings) as store:
        for stream in ("s/calm", "s/troubled"):
            store.create_stream(stream, routing_key="k", segments=2)
    asked = text("SELECT stream_id FROM weir_internal.stream WHERE stream_name = 's/troubled'")
    stream_id = database.transaction(lambda c: c.execute(asked).scalar_one())
    log = tmp_path / "driver.log"
    trouble = Troubled(cluster, Path(settings.warehouse) / str(stream_id))
    with log.open("w") as out:
        driver = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(rows=ROWS, tasks=TASKS), *given],
            env=cluster.driver(python, *_SPECULATION), stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait(what: str, found: Callable[[], Any]) -> Any:
        def answer() -> Any:
            assert driver.poll() is None, log.read_text()
            return found()

        return wait_for(what, answer, 400)

    try:
        trouble.make(wait)
        assert driver.wait(400) == 0, log.read_text()
    finally:
        driver.kill()
        driver.wait()
        trouble.end()

    calm, troubled = facts(database, "s/calm"), facts(database, "s/troubled")
    assert troubled == calm
    assert sum(file.events for file in troubled[0]) == ROWS
    recorded = text("SELECT path FROM weir_internal.data_file WHERE stream_id = :s")
    paths = database.transaction(lambda c: c.execute(recorded, {"s": stream_id}).scalars().all())
    events = {Path(settings.warehouse) / path for path in paths}
    assert trouble.unfinished - events, "no file was lost: nothing was troubled"
    assert trouble.files() == events, "a losing try has left files"
    with weir.open(settings=settings) as store:
        store.verify(stream="s/troubled", engine="pyarrow")  # or it raises what is wrong
        numbers = store.read("s/troubled", columns=["n"])["n"]
    assert sorted(numbers.to_pylist()) == list(range(ROWS))


def facts(database: Database, stream: str) -> tuple[list[Any], list[int]]:
    """Return what is recorded of the files of a stream, with their hashes, and of its rows."""
    files = text(
        """SELECT segment_id, start_offset, events, bytes, first_seq, last_seq, end_hash, file_hash
        FROM weir_internal.data_file WHERE stream_name = :s ORDER BY segment_id, start_offset"""
    )
    digests = text(
        """SELECT clock, digest FROM weir_internal.time_index
        WHERE stream_id = (SELECT stream_id FROM weir_internal.stream WHERE stream_name = :s)"""
    )
    given = {"s": stream}
    found = database.transaction(lambda c: c.execute(files, given).all())
    rows = database.transaction(lambda c: c.execute(digests, given).all())
    return list(found), sorted(sum_of_rows(int(one.digest), int(one.clock)) for one in rows)
