"""Spark appends to an object store by S3A: what it asks for, and what it leaves."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from sqlalchemy import text

from tests.crash.jobs import write_config
from tests.spark.maven import S3A, jars
from tests.warehouse.object_store import ObjectStore
from tests.world.garbage import sweep
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings

pytestmark = pytest.mark.release

_APPEND = """
import sys, weir
from pyspark.sql import SparkSession
from weir.spark.base import progress
progress.EVERY = 1e6  # a slow append would list its folder, to say how much is written
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


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    there = replace(settings, warehouse="s3a://lake/weir", output_roots=("s3a://lake/output",))
    for name, segments in (("s/first", 1), ("s/one", 1), ("s/many", 16)):
        create_stream(
            database, stream_name(name), routing_key="k", segments=segments, request_id=name
        )
    rows = pa.table({"k": ["a"], "n": pa.array([0], pa.int64())})
    shared(there).append("s/first", rows, writer_id="me", batch_id="1")
    return there


def append_by_spark(here: Settings, lake: ObjectStore, *streams: str) -> None:
    run_by_spark(here, lake, _APPEND, *streams)


def run_by_spark(here: Settings, lake: ObjectStore, source: str, *arguments: str) -> str:
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
        ["spark-submit", "--master=local[2,4]", "--conf=spark.ui.enabled=false",
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
        found = shared(here).read(name)
        assert sorted(found["n"].to_pylist()) == list(range(1000))
    for name in ("s/first", *streams):
        truncate_before(database, stream_name(name), "tail", dry_run=False, request_id=name)
    assert sweep(database, here.warehouse, 0.0)["failed"] == []
    assert (set(lake.objects), lake.uploads) == ({"weir/_weir_installation"}, {})


def test_a_file_is_written_once_and_not_asked_for(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    lake.asked.clear()
    append_by_spark(here, lake, "s/one", "s/many")
    for stream_id, files in ((2, 2), (3, 32)):
        asked = [one for one in lake.asked if f"weir/{stream_id}" in one.replace("%2F", "/")]
        # The folder is listed before the write, after it, and before the commit.
        assert Counter(one.split()[0] for one in asked) == {"PUT": files, "GET": 3}
    assert not [name for name in lake.objects if name.endswith("/")]
    check_swept(database, here, lake, "s/one", "s/many")


def leaving_another(lake: ObjectStore, below: str, content: bytes) -> set[str]:
    """Let another file of a task that failed be there; return its name, once it is."""
    left = set[str]()

    def leave(asked: str) -> str:
        method, _, name = asked.partition(" ")
        if method == "PUT" and below in name and "/part-" in name and not left:
            left.add(name.replace("/part-", "/part-killed-"))
            lake.objects[min(left)] = content
        return ""

    lake.fault = leave
    return left


def test_what_an_attempt_left_that_does_not_count_is_no_event_and_is_deleted(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    [whole] = [content for name, content in lake.objects.items() if name.endswith(".parquet")]
    left = leaving_another(lake, "weir/3/", whole)
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
    left = leaving_another(lake, "/table/", b"half a file")
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
