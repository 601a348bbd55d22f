"""An installation on a real HDFS: what is on it is read by Hadoop's own commands, not by Weir."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection

from tests.committed_folders import committed_folders
from tests.crash.jobs import write_config
from tests.spark.hdfs import hdfs
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from weir.adjunct.stores import define_store, read_store
from weir.adjunct.versions import AdjunctVersion, find_version
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.operations.jobs import ACTIONS
from weir.programs.opening import shared
from weir.settings import Settings
from weir.spark.adjuncts.read import current_frame
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs") / "cluster") as uri:
        yield uri


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings, cluster: str,
         tmp_path: Path) -> Installation:  # fmt: skip
    """All that it has lies on the cluster."""
    root = f"{cluster}/{tmp_path.name}"
    here = replace(
        settings, warehouse=f"{root}/warehouse", input_roots=(f"{root}/input",),
        output_roots=(f"{root}/output",),
    )  # fmt: skip
    return Installation(spark, database, here)


def on_hdfs(weir: Installation, folder: str) -> set[str]:
    """Return the files below a folder, and the folders that are empty, with a slash."""
    jvm: Any = weir.spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(weir.spark.sparkContext._jsc.hadoopConfiguration())
    found = set[str]()

    def look(where: Any) -> None:
        inside = list(system.listStatus(where))
        name = str(where.toUri().getPath()).removeprefix(str(path.toUri().getPath()) + "/")
        if not inside:
            found.add(f"{name}/")
        for one in inside:
            if one.isDirectory():
                look(one.getPath())
            else:
                found.add(f"{name}/{one.getPath().getName()}")

    look(path)
    return {one.removeprefix(f"{path.toUri().getPath()}/") for one in found}


def check_warehouse(weir: Installation) -> None:
    """In the warehouse are its mark and the files that the metadata lists, and no folder."""
    listed = {row.path for row in weir.query("SELECT path FROM data_file")}
    assert on_hdfs(weir, weir.settings.warehouse) == listed | {MARKER}


def test_files_tables_and_frames_are_appended_read_truncated_and_swept(weir: Installation) -> None:
    stream = weir.create(segments=3)
    frame = weir.spark.range(60).selectExpr("concat('key ', id % 9) AS k", "id AS n")
    frame.write.parquet(f"{weir.input}/rows")
    weir.ingest(stream, [f"{weir.input}/rows"])
    weir.append(stream, [(f"key {n % 9}", n) for n in range(60, 90)])
    table = pa.table({"k": ["key 1", "late"], "n": [90, 91]})
    shared(weir.settings).append(str(stream), table, writer_id="w", batch_id="b")
    assert sorted(weir.check(stream, read=True)["n"]) == list(range(92))
    read = shared(weir.settings).read(str(stream), columns=["n"])
    assert sorted(read["n"].to_pylist()) == list(range(92))
    sweep(weir.database, weir.settings.warehouse, 0.0)
    check_warehouse(weir)

    tail = weir.value("SELECT tail FROM streams WHERE stream = :s", s=str(stream))
    weir.truncate(stream, json.dumps(tail))
    weir.append(stream, [("late", 92)])
    assert sweep(weir.database, weir.settings.warehouse, 0.0)["failed"] == []
    assert list(weir.check(stream, read=True)["n"]) == [92]
    check_warehouse(weir)


def test_a_batch_is_written_to_a_stream_and_to_files_and_counted_once(weir: Installation) -> None:
    stream, out = weir.create(), weir.create("s/out")
    weir.append(stream, [(f"key {n % 9}", n) for n in range(90)])
    group = weir.group(stream)

    def plain(events: DataFrame) -> DataFrame:
        return events.select("k", "n")

    weir.consumer(group, plain, "parquet:out", "stream:s/out").run()
    weir.append(stream, [("late", 90)])
    weir.consumer(group, plain, "parquet:out", "stream:s/out").run()
    assert sorted(weir.check(out, read=True)["n"]) == list(range(91))
    folders = committed_folders(weir.database, group, "out")
    root = weir.settings.output_roots[0]
    assert weir.spark.read.parquet(*[f"{root}/{one}" for one in folders]).count() == 91
    system, base = filesystem(root)
    with system.open_input_stream(f"{base}/out/group={group}/_manifest.json") as manifest:
        assert json.loads(manifest.read())["folders"] == folders


def submit(weir: Installation, what: str, *options: str, **arguments: Any) -> None:
    """Run a job as a process of its own, with a Spark of its own that has two cores."""
    done = subprocess.run(
        ["spark-submit", "--master", "local[2]", "--conf", "spark.ui.enabled=false", *options,
         ACTIONS[what].file, "--arguments", json.dumps(arguments)],
        env=os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "WEIR_DATABASE": weir.settings.database,
            "WEIR_WAREHOUSE": weir.settings.warehouse,
            "WEIR_GRACE_PERIOD": "0",
        },
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def newest_version(connection: Connection) -> AdjunctVersion:
    version = find_version(connection, read_store(connection, "s/store").store_id)
    assert version is not None
    return version


def test_a_store_is_built_again_and_again_by_jobs(weir: Installation) -> None:
    stream = weir.create("s/changes", segments=2)
    define_store(
        weir.database, "s/store", stream, AdjunctConfiguration(history=10_000_000),
        AdjunctDefinition(delete_when="n = 7"), request_id="define",
    )  # fmt: skip
    expected = dict[str, int]()
    for built in (1, 2, 3):
        rows = [(f"key {n}", n) for n in range(built, 30 * built, built)]
        weir.append(stream, rows)
        submit(weir, "adjunct")
        for key, n in rows:
            expected.pop(key, None)
            if n != 7:
                expected[key] = n
        now = weir.database.snapshot(newest_version)
        assert now.version == built
        frame = current_frame(weir.spark, weir.settings.warehouse, now)
        assert {row["_weir_key"]: row["n"] for row in frame.collect()} == expected


def test_doctor_says_what_is_right_and_what_is_wrong(weir: Installation) -> None:
    stream = weir.create()
    weir.append(stream, [("k", 1)])
    no_server = "hdfs://localhost:1/input"
    here = replace(weir.settings, input_roots=(*weir.settings.input_roots, no_server))
    done = subprocess.run(
        [sys.executable, "-m", "weir.terminal", "doctor"],
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path), "WEIR_CONFIG": str(write_config(here))
        },
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert f"ok     warehouse   {here.warehouse}" in done.stdout
    assert f"note   input       {here.input_roots[0]} does not exist" in done.stdout
    assert f"WRONG  input       {no_server}: java.net.ConnectException" in done.stdout
    assert f"ok     output      {here.output_roots[0]}" in done.stdout
    assert done.returncode == 1
