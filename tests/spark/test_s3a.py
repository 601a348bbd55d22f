"""Spark appends to an object store by S3A: what it asks for, and what it leaves."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import weir
from tests.spark.maven import S3A, jars
from tests.warehouse.object_store import ObjectStore, object_store
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.retention.garbage import sweep
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings

pytestmark = pytest.mark.release

_PROGRAM = """
import sys, weir
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
with weir.open(spark=spark) as store:
    for stream in sys.argv[1:]:
        rows = spark.range(1000).selectExpr("'k' || id AS k", "id AS n")
        store.append(stream, rows, writer_id="spark", batch_id="1")
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    there = replace(settings, warehouse="s3a://lake/weir")
    for name, segments in (("s/first", 1), ("s/one", 1), ("s/many", 16)):
        create_stream(
            database, stream_name(name), routing_key="k", segments=segments, request_id=name
        )
    rows = pa.table({"k": ["a"], "n": pa.array([0], pa.int64())})
    weir.append("s/first", rows, writer_id="me", batch_id="1", settings=there)
    return there


def append_by_spark(here: Settings, lake: ObjectStore, *streams: str) -> None:
    conf = {
        "endpoint": f"http://127.0.0.1:{lake.port}", "endpoint.region": "eu-central-1",
        "path.style.access": "true", "connection.ssl.enabled": "false",
        "performance.flags": "create,mkdir", "retry.interval": "50ms",
        "retry.throttle.interval": "50ms",
    }  # fmt: skip
    options = [f"--conf=spark.hadoop.fs.s3a.{name}={value}" for name, value in conf.items()]
    program = here.state / "program.py"
    program.write_text(_PROGRAM)
    done = subprocess.run(
        ["spark-submit", "--master=local[2,4]", "--conf=spark.ui.enabled=false",
         f"--jars={jars(*S3A)}", *options, program, *streams],
        env=os.environ | lake.environment | {
            "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable,
            "WEIR_DATABASE": here.database, "WEIR_WAREHOUSE": here.warehouse,
        },
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


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
