"""An installation on a file system that Hadoop knows and pyarrow does not: viewfs, onto a folder.

No part of it is on disk under a name that pyarrow could be given, so what works here works by
Hadoop alone.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from tests.committed_folders import committed_folders
from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from tests.world.streams import run
from weir.annex.recovery.recover import recover
from weir.database.connection import Database
from weir.errors import BatchFailed, InvalidInput
from weir.model.names import StreamName, stream_name
from weir.operations.jobs import ACTIONS
from weir.programs.opening import shared
from weir.settings import Settings
from weir.spark.base import delete
from weir.spark.base.delete import deleter
from weir.spark.inputs import from_tasks
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER, Marker, read_marker, write_marker

ONE_SENTENCE = r"'viewfs://.*' can't be opened \(by Hadoop: this process has no JVM, by pyarrow: "


@pytest.fixture
def box(spark: SparkSession, tmp_path: Path) -> str:
    """A mount table with the test's folder in it; its name has a capital, as such names may."""
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    name = "Box-" + tmp_path.name.replace("_", "-")
    conf.set(f"fs.viewfs.mounttable.{name}.link./x", f"file://{tmp_path}")
    return f"viewfs://{name}/x"


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings, box: str) -> Installation:
    """All that it has lies in the box."""
    here = replace(
        settings, warehouse=f"{box}/warehouse", input_roots=(f"{box}/input",),
        output_roots=(f"{box}/output",),
    )  # fmt: skip
    return Installation(spark, database, here)


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Ninety events of nine keys, in four segments."""
    name = weir.create()
    weir.append(name, [(f"key {i % 9}", i) for i in range(90)])
    return name


def on_disk(folder: Path) -> set[str]:
    """Its files without Hadoop's checksums, and the folders of appends that are empty."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    empty = {f"{path}/" for path in folder.rglob("_weir_*=*") if not any(path.iterdir())}
    return {name for name in names if not name.endswith(".crc")} | empty


def check_disk(weir: Installation, tmp_path: Path) -> None:
    """In the warehouse are its mark and the files that the metadata lists, and no folder besides.

    Found without Hadoop."""
    listed = {row.path for row in weir.query("SELECT path FROM data_file")}
    assert on_disk(tmp_path / "warehouse") == listed | {MARKER}


def truncate_all(weir: Installation, stream: StreamName) -> None:
    """Move the head to the tail."""
    tail = weir.value("SELECT tail FROM streams WHERE stream = :s", s=str(stream))
    weir.truncate(stream, json.dumps(tail))


def test_files_are_appended_read_truncated_and_deleted(
    weir: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = weir.create(on_missing_key="quarantine")
    for i in range(3):
        lines = [f"key {n % 9},{n}" for n in range(30 * i, 30 * i + 30)] + [",-1"]
        (tmp_path / "input" / f"{i}.csv").write_text("\n".join(["k,n", *lines]))
    committed = weir.ingest(stream, ["2.csv", f"{weir.input}//0.csv", "1.csv"], "csv")
    assert (committed.events, committed.rejected) == (90, 3)
    first = weir.check(stream, read=True)
    assert sorted(first["n"]) == list(range(90))
    assert len(weir.check(stream.rejected, key=None, read=True)) == 3
    sweep(weir.database, weir.settings.warehouse, 0.0)  # of the rows that went to s/events.rejected
    check_disk(weir, tmp_path)

    monkeypatch.setattr(delete, "FEW", 2)  # as many files would be
    truncate_all(weir, stream)
    weir.append(stream, weir.spark.createDataFrame([("late", 90)], "k string, n int"))
    report = sweep(weir.database, weir.settings.warehouse, 0.0, deleter(lambda: weir.spark))
    assert report["deleted"] == first["_file"].nunique()
    assert report["failed"] == []
    assert list(weir.check(stream, read=True)["n"]) == [90]
    check_disk(weir, tmp_path)


def test_the_driver_reads_files_where_only_a_jvm_reaches_them(
    weir: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({
        "k": ["a", "b"], "open": pa.array([None, None], pa.list_(pa.null())),
        "deep": pa.array([{"x": [1]}, None]),
        "t": pa.array([1000, 1001], pa.timestamp("ns", "UTC")),
    })  # fmt: skip
    (tmp_path / "input/dt=1").mkdir()
    pq.write_table(rows, tmp_path / "input/dt=1/x.parquet")
    stream = weir.create(on_bad_rows="quarantine", segments=1)
    done = weir.ingest(stream, ["dt=1"])
    assert (done.events, done.rejected) == (1, 1)
    [event] = weir.frame(stream).collect()
    assert (event.k, event.deep.x, event.dt) == ("a", [1], "1")
    (tmp_path / "input/y.json").write_text('{"k":"c","deep":{"x":[2]}}\n')
    assert weir.ingest(stream, ["y.json"], "json").events == 1
    monkeypatch.setattr(from_tasks, "MOST_BYTES", 100)
    with raises("setting_invalid files libhdfs"):
        weir.ingest(stream, ["dt=1"], again="large")


@pytest.mark.release
def test_results_of_an_attempt_that_failed_are_deleted_and_those_that_count_are_listed(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    weir.create("s/out")
    group = weir.group(stream)

    def fails_late(events: DataFrame) -> dict[str, DataFrame]:
        failing = events.selectExpr("k", "IF(n = 77, raise_error('seventy-seven'), n) AS n")
        return {"out": events.select("k", "n"), "s/out": failing}

    with pytest.raises(BatchFailed, match="seventy-seven"):
        weir.consumer(group, fails_late, "parquet:out", "stream:s/out").run()
    for last in (90, 91):  # a batch each: the manifest is written, then replaced
        weir.consumer(group, lambda e: e.select("k", "n"), "parquet:out", "stream:s/out").run()
        weir.append(stream, [("late", last)])
    assert sorted(weir.check(stream_name("s/out"), read=True)["n"]) == list(range(91))
    folders = committed_folders(weir.database, group, "out")
    written = tmp_path / "output" / f"out/group={group}"
    manifest = json.loads((written / "_manifest.json").read_text())
    assert (len(folders), manifest["folders"]) == (2, folders)
    assert weir.spark.read.parquet(*[f"{tmp_path}/output/{f}" for f in folders]).count() == 91
    assert len(list(written.glob("batch=*/attempt=*"))) == 3

    assert sweep(weir.database, weir.settings.warehouse, 0.0)["failed"] == []
    left = {
        str(p.relative_to(tmp_path / "output")) + "/" for p in written.glob("batch=*/attempt=*")
    }
    assert left == set(folders)
    check_disk(weir, tmp_path)


@pytest.mark.release
def test_unknown_and_missing_files_are_listed_and_unknown_ones_deleted(
    weir: Installation, stream: StreamName, tmp_path: Path
) -> None:
    root = weir.settings.warehouse
    [known, *_] = weir.query("SELECT path FROM data_file ORDER BY path")
    gone = tmp_path / "warehouse" / known.path
    gone.unlink()
    stray = gone.parent.parent / "_weir_task=99" / "part-0.c000.parquet"
    stray.parent.mkdir()
    stray.write_text("rows")
    report = recover(weir.database, root, request_id="look")
    assert report["unknown"] == [str(stray.relative_to(tmp_path / "warehouse"))]
    assert report["missing"] == [known.path]
    recover(weir.database, root, unknown_files="delete", request_id="do")
    assert sweep(weir.database, root, 0.0)["deleted"] == 1
    assert not stray.parent.exists()
    assert recover(weir.database, root, request_id="look again")["unknown"] == []


@pytest.mark.release
def test_what_hadoop_does_not_delete_is_not_taken_for_gone(
    weir: Installation, spark: SparkSession
) -> None:
    # Of the kernel's own files root can't delete any: Hadoop says False, as for what is not there.
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.kernel.link./x", "file:///proc")
    root = "viewfs://kernel/x"
    for path in ("version", "sys/kernel/", "sys/none/", "none"):
        run(
            weir.database,
            "INSERT INTO garbage (root, path, reason) VALUES (:root, :path, 'fenced')",
            root=root, path=path,
        )  # fmt: skip
    report = sweep(weir.database, weir.settings.warehouse, 0.0)
    assert report["deleted"] == 2
    assert [said.partition(" can't")[0] for said in report["failed"]] == [
        f"{root}/sys/kernel/", f"{root}/version"
    ]  # fmt: skip
    assert [row.path for row in weir.query("SELECT path FROM garbage ORDER BY path")] == [
        "sys/kernel/", "version"
    ]  # fmt: skip


@pytest.mark.release
def test_a_program_with_a_session_appends_and_reads_by_pyarrow_too(
    weir: Installation, stream: StreamName
) -> None:
    rows = pa.table({"k": ["key 1", "late"], "n": [90, 91]})
    shared(weir.settings).append(str(stream), rows, writer_id="w", batch_id="b")
    assert sorted(weir.check(stream, read=True)["n"]) == list(range(92))
    table = shared(weir.settings).read(str(stream), columns=["n"])
    assert sorted(table["n"].to_pylist()) == list(range(92))


@pytest.mark.release
def test_jobs_that_need_no_session_reach_it_by_the_jvm_of_spark_submit(
    weir: Installation, stream: StreamName, box: str, tmp_path: Path
) -> None:
    sweep(weir.database, weir.settings.warehouse, 0.0)
    truncate_all(weir, stream)
    name = box.removeprefix("viewfs://").removesuffix("/x")
    done = subprocess.run(
        ["spark-submit", "--master", "local[1]", "--conf",
         f"spark.hadoop.fs.viewfs.mounttable.{name}.link./x=file://{tmp_path}",
         ACTIONS["upkeep"].file],
        env=os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "WEIR_DATABASE": weir.settings.database,
            "WEIR_GRACE_PERIOD": "0",
            "WEIR_WAREHOUSE": weir.settings.warehouse.replace("viewfs://", "ViewFS://") + "/",
        },
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert weir.query("SELECT FROM garbage") == []
    assert weir.value("SELECT report #>> '{deleted,deleted}' FROM job_run") != "0"
    check_disk(weir, tmp_path)


def test_a_process_without_a_jvm_says_what_is_wrong_in_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c",
         "import sys; from weir.errors import InvalidInput\n"
         "try: __import__('weir.warehouse.marker').warehouse.marker.read_marker('viewfs://box/x')\n"
         "except InvalidInput as error: sys.exit(str(error))"],
        env={"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert re.match(ONE_SENTENCE, done.stderr), done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.release
def test_executors_without_a_jvm_say_it_too(weir: Installation, stream: StreamName) -> None:
    def read(_: object) -> list[str]:
        try:
            return [str(filesystem(root))]
        except InvalidInput as error:
            return [str(error)]

    root = weir.settings.warehouse
    [said] = weir.spark.sparkContext.parallelize([0], 1).mapPartitions(read).collect()
    assert re.match(ONE_SENTENCE, said), said


@pytest.mark.release
def test_a_mark_is_replaced_on_a_file_system_that_can_not_do_it_in_one_step(
    spark: SparkSession, tmp_path: Path
) -> None:
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.plain.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    conf.set("fs.viewfs.overload.scheme.target.file.impl", "org.apache.hadoop.fs.LocalFileSystem")
    conf.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./x", f"file://{tmp_path}")
    root = f"plain://{tmp_path.name}/x/warehouse"
    for sweeps in (1, 2):
        write_marker(root, Marker("one", sweeps))
    assert read_marker(root)[:2] == ("one", 2)
    assert on_disk(tmp_path) == {f"warehouse/{MARKER}"}


@pytest.mark.release
def test_files_are_read_and_written_in_pieces_of_any_size(box: str) -> None:
    system, base = filesystem(box)
    data = os.urandom((16 << 20) + 7)  # more than one piece
    with system.open_output_stream(f"{base}/some data") as out:
        out.write(data[:5])
        assert out.tell() == 5
        out.write(data[5:])
    with system.open_input_file(f"{base}/some data") as source:
        assert source.size() == len(data)
        source.seek(3)
        assert source.read(4) == data[3:7]
        assert source.read() == data[7:]
        assert source.read() == b""
    [found] = system.get_file_info([f"{base}/some data"])
    assert (found.type, found.size) == (fs.FileType.File, len(data))
    [nothing] = system.get_file_info([f"{base}/nothing"])
    assert nothing.type == fs.FileType.NotFound
    with pytest.raises(FileNotFoundError, match="nothing"):
        system.open_input_file(f"{base}/nothing")
    with pytest.raises(FileNotFoundError, match="nothing"):
        system.get_file_info(fs.FileSelector(f"{base}/nothing"))
