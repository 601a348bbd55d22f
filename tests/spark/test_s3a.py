"""Spark appends to an object store by S3A: what it asks for, and what it leaves."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import weir
from tests.committed_folders import committed_folders
from tests.crash.jobs import write_config
from tests.spark.maven import S3A, jars
from tests.warehouse.object_store import ObjectStore, object_store
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.retention.garbage import sweep
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem

pytestmark = pytest.mark.release

_APPEND = """
import sys, weir
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
with weir.open(spark=spark) as store:
    for stream in sys.argv[1:]:
        rows = spark.range(1000).selectExpr("'k' || id AS k", "id AS n")
        store.append(stream, rows, writer_id="spark", batch_id="1")
"""

_BUILD = """
import pyarrow as pa, weir
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
with weir.open(spark=spark) as store:
    store.define_adjunct_store("s/store", stream="s/one", delete_when="n = 7", history="7 d")
    for first in (0, 5):
        numbers = range(first, first + 10)
        rows = pa.table({"k": [f"k{n}" for n in numbers], "n": pa.array(numbers, pa.int64())})
        store.append("s/one", rows, writer_id="w", batch_id=str(first))
        store.adjunct()
    print("found", [store.look_up("s/store", f"k{n}")["n"] for n in (0, 6, 8, 14)])
    print("deleted", store.look_up("s/store", "k7"))
"""

# A batch with an output of files. Whoever computes the row 77 first has an end as told.
_BATCH = """
import os, sys, weir
from pyspark.sql import SparkSession, functions as F
from weir.errors import WeirError
how, once = sys.argv[1:]
def unlucky(n):
    try:
        if n == 77:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
            if how == "fail":
                raise ValueError("unlucky")
            jvm = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]
            os.kill(int(jvm), 9)
    except FileExistsError:
        pass
    return n
spark = SparkSession.builder.getOrCreate()
with weir.open(spark=spark) as store:
    rows = spark.range(1000).selectExpr("'k' || id % 2 AS k", "id AS n")
    store.append("s/one", rows, writer_id="spark", batch_id="1")
    if not os.path.exists(once):
        store.create_reader_group("readers", streams=["s/one"])
    with store.reader("readers") as reader:
        for batch in reader:
            late = batch.events.repartition(2).select("k", F.udf(unlucky, "long")("n").alias("n"))
            try:
                batch.commit({"parquet:late partition_by=k": late})
                print("committed")
            except WeirError as error:
                print("refused", error.code)
                break
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    there = replace(settings, warehouse="s3a://lake/weir", output_roots=("s3a://lake/output",))
    for name, segments in (("s/first", 1), ("s/one", 1), ("s/many", 16)):
        create_stream(
            database, stream_name(name), routing_key="k", segments=segments, request_id=name
        )
    rows = pa.table({"k": ["a"], "n": pa.array([0], pa.int64())})
    weir.append("s/first", rows, writer_id="me", batch_id="1", settings=there)
    return there


def append_by_spark(here: Settings, lake: ObjectStore, *streams: str) -> None:
    run_by_spark(here, lake, _APPEND, *streams)


def run_by_spark(
    here: Settings, lake: ObjectStore, source: str, *arguments: str, master: str = "local[2,4]"
) -> str:
    """Run a program, and return what it says."""
    conf = {
        "endpoint": f"http://127.0.0.1:{lake.port}", "endpoint.region": "eu-central-1",
        "path.style.access": "true", "connection.ssl.enabled": "false",
        "performance.flags": "create,mkdir", "retry.interval": "50ms",
        "retry.throttle.interval": "50ms",
    }  # fmt: skip
    options = [f"--conf=spark.hadoop.fs.s3a.{name}={value}" for name, value in conf.items()]
    program = here.state / "program.py"
    program.write_text(source)
    done = subprocess.run(
        ["spark-submit", f"--master={master}", "--conf=spark.ui.enabled=false",
         f"--jars={jars(*S3A)}", *options, program, *arguments],
        env=os.environ | lake.environment | {
            "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable,
            "WEIR_CONFIG": str(write_config(here)),
        },
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_swept(database: Database, here: Settings, lake: ObjectStore, *streams: str) -> None:
    """Each stream has its rows once, and nothing is there after they were truncated."""
    for name in streams:
        found = weir.read(name, settings=here)
        assert sorted(found["n"].to_pylist()) == list(range(1000))
    for name in ("s/first", *streams):
        truncate_before(database, stream_name(name), "tail", dry_run=False, request_id=name)
    assert sweep(database, here.warehouse, 0.0)["failed"] == []
    assert (set(lake.objects), lake.uploads) == ({"weir/_weir_installation"}, {})


def test_a_file_is_written_once_and_asked_for_three_times(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    lake.asked.clear()
    append_by_spark(here, lake, "s/one", "s/many")
    for stream_id, files in ((2, 2), (3, 32)):
        asked = [one for one in lake.asked if f"weir/{stream_id}" in one.replace("%2F", "/")]
        # Its size for Spark and for pyarrow, and its footer; the folder three times.
        assert Counter(one.split()[0] for one in asked) == {
            "PUT": files, "HEAD": 2 * files, "GET": files + 3
        }  # fmt: skip
    assert not [name for name in lake.objects if name.endswith("/")]
    check_swept(database, here, lake, "s/one", "s/many")


def test_what_an_attempt_left_that_does_not_count_is_no_event_and_is_deleted(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    left = set[str]()

    def leave_another(asked: str) -> str:
        method, _, name = asked.partition(" ")
        other = name.replace("/part-00000-", "/part-00000-killed-")
        if method == "HEAD" and other != name and not {name, other} & left:  # Spark's commit of it
            lake.objects[other] = lake.objects[name]
            left.add(other)
        return ""

    lake.fault = leave_another
    append_by_spark(here, lake, "s/many")
    assert left
    assert not [name for name in lake.objects if "killed" in name]
    check_swept(database, here, lake, "s/many")


def test_requests_that_fail_lose_nothing_and_leave_nothing(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    lake.fault = lambda _: ("503", "lost", "slow", "")[min(len(lake.asked) % 12, 3)]
    append_by_spark(here, lake, "s/many")
    lake.fault = lambda _: ""
    check_swept(database, here, lake, "s/many")


def test_versions_of_a_store_are_written_once_and_only_what_counts_is_left(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    left = set[str]()

    def leave_another(asked: str) -> str:
        method, _, name = asked.partition(" ")
        if method == "HEAD" and "/table/part-" in name and "killed" not in name and not left:
            other = name.replace("/part-00000-", "/part-00000-killed-")
            lake.objects[other] = b"half a file"
            left.add(other)
        return ""

    lake.fault = leave_another
    said = run_by_spark(here, lake, _BUILD)
    assert "found [0, 6, 8, 14]" in said
    assert "deleted None" in said
    listed = database.transaction(
        lambda c: c.execute(text("SELECT path, version, kind FROM adjunct_file")).all()
    )
    assert {(one.version, one.kind) for one in listed} >= {
        (1, "table"),
        (2, "table"),
        (2, "history"),
    }
    files = {f"weir/{one.path}" for one in listed}
    assert {one for one in lake.objects if "/_weir_adjunct=" in one} == files
    written = Counter(
        one for one in lake.asked if one.startswith("PUT") and "_weir_adjunct=" in one
    )
    assert written.keys() >= {f"PUT {one}" for one in files}
    assert set(written.values()) == {1}
    assert left


def test_an_output_is_written_once_and_a_task_that_failed_leaves_no_row(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    left = set[str]()

    def leave_another(asked: str) -> str:
        method, _, name = asked.partition(" ")
        if method == "HEAD" and "output/late" in name and "/part-" in name and not left:
            other = name.replace("/part-", "/part-killed-")
            lake.objects[other] = lake.objects[name]
            left.add(other)
        return ""

    lake.fault = leave_another
    said = run_by_spark(here, lake, _BATCH, "fail", str(here.state / "once"))
    assert "committed" in said
    assert left
    written = Counter(one for one in lake.asked if one.startswith("PUT output/late/"))
    assert set(written.values()) == {1}
    check_output(database, here, lake, list(range(1000)))


def check_output(database: Database, here: Settings, lake: ObjectStore, rows: list[int]) -> None:
    """The folders that count have these rows, read as a whole by pyarrow."""
    system, base = filesystem(here.output_roots[0])
    folders = committed_folders(database, "readers", "late")
    tables = [pq.read_table(f"{base}/{one}", filesystem=system) for one in folders]
    assert sorted(n for table in tables for n in table["n"].to_pylist()) == rows


def test_an_output_of_which_an_executor_was_lost_is_left_and_written_again(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    once = str(here.state / "once")
    first = run_by_spark(here, lake, _BATCH, "lose", once, master="local-cluster[2,1,1024]")
    assert "refused output_in_doubt" in first
    assert committed_folders(database, "readers", "late") == []
    assert "committed" in run_by_spark(here, lake, _BATCH, "lose", once)
    check_output(database, here, lake, list(range(1000)))
