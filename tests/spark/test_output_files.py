"""Parquet outputs are written where they stay, each row once, whatever becomes of tasks and
results."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.committed_folders import committed_folders
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.installation import Installation
from tests.warehouse.object_store import ObjectStore
from weir.model.names import StreamName
from weir.spark.consumers.parquet_output import output_frame
from weir.spark.consumers.reader import Reader

# A batch with an output of files. Whoever computes the row 77 first has an end as told.
_BATCH = """
import os, sys, time, weir
from pyspark.sql import SparkSession, functions as F
from weir.errors import WeirError
how, once = sys.argv[1:]
def unlucky(n):
    try:
        if n == 77:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
            if how == "fail":
                raise ValueError("unlucky")
            if how == "linger":
                time.sleep(20)
                return n
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


def test_each_file_in_an_object_store_is_one_request(
    weir: Installation, stream: StreamName, lake: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lake.environment.items():  # of the tasks of the session that tests share
        monkeypatch.setitem(weir.spark.sparkContext.environment, name, value)
    there = replace(weir.settings, output_roots=("s3://lake/output",))
    weir = Installation(weir.spark, weir.database, there)
    group = weir.group(stream)
    with Reader(weir.spark, group, installation=weir.opened) as reader:
        for batch in reader:
            lake.asked.clear()
            batch.write("parquet:out partition_by=k", batch.events.select("k", "n"))
            batch.write("parquet:none", batch.events.where("n < 0"))
            asked = Counter(one for one in lake.asked if "list-type" not in one)  # the progress
            batch.commit()
    folders = {name: committed_folders(weir.database, group, name)[0] for name in ("out", "none")}
    files = {f"PUT {one}" for one in lake.objects if one.endswith(".parquet")}
    assert asked == Counter(dict.fromkeys(files, 1))
    below = {name: [one for one in files if f"/{path}" in one] for name, path in folders.items()}
    assert (len(below["out"]) >= 11, len(below["none"])) == (True, 1)
    assert not [name for name in lake.objects if name.endswith("/")]


def test_a_result_that_failed_is_written_again_to_another_folder(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)

    def failing(events: DataFrame) -> DataFrame:
        return events.withColumn("n", F.expr("if(n = 77, raise_error('late'), n)"))

    with Reader(weir.spark, group, installation=weir.opened) as reader:
        for batch in reader:
            for _ in range(2):
                with pytest.raises(Exception, match="late"):
                    batch.write("parquet:out", failing(batch.events))
            batch.commit({"parquet:out": batch.events})
    [folder] = committed_folders(weir.database, group, "out")
    assert folder.endswith(".2/")
    found = output_frame(weir.spark, weir.database, weir.settings, "out", group)
    assert sorted(row.n for row in found.select("n").collect()) == list(range(90))


# Columns of types that files do not have, and what is said of them.
_REFUSED = {
    "interval 1 day": "interval day", "interval '1' month": "interval month",
    "null": "no value and no type", "array()": "void", "'a' collate UTF8_LCASE": "collate",
    "time'10:00'": "time",
}  # fmt: skip


def test_a_column_of_a_type_that_files_do_not_have_is_refused_by_name(
    weir: Installation, stream: StreamName
) -> None:
    with Reader(weir.spark, weir.group(stream), installation=weir.opened) as reader:
        batch = next(reader)
        for column, says in _REFUSED.items():
            with raises(f"column_type_unsupported 'x' {says}"):
                batch.write("parquet:out", batch.events.selectExpr("n", f"{column} AS x"))
        batch.commit()


def run(weir: Installation, how: str, master: str, *more: str) -> str:
    """Run a program, and return what it says."""
    program = weir.settings.state / "program.py"
    program.write_text(_BATCH)
    done = subprocess.run(
        ["spark-submit", f"--master={master}", "--conf=spark.ui.enabled=false", *more, program,
         how, str(weir.settings.state / "once")],
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable,
            "WEIR_CONFIG": str(write_config(weir.settings)),
        },
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_output(weir: Installation) -> None:
    """The folders that count have each row once, read as a whole."""
    root, tables = Path(weir.settings.output_roots[0]), list[Any]()
    for folder in committed_folders(weir.database, "readers", "late"):
        tables += [pq.ParquetFile(one).read() for one in (root / folder).rglob("*.parquet")]
    assert sorted(n for one in tables for n in one["n"].to_pylist()) == list(range(1000))


_SPECULATION = (
    "--conf=spark.speculation=true", "--conf=spark.speculation.quantile=0.5",
    "--conf=spark.speculation.interval=100ms",
)  # fmt: skip


@pytest.mark.release
@pytest.mark.parametrize(
    ("how", "master", "more"),
    [
        ("fail", "local[2,4]", ()),
        ("linger", "local-cluster[2,2,1024]", _SPECULATION),
    ],
)
def test_a_task_that_failed_or_was_overtaken_leaves_no_row(
    weir: Installation, how: str, master: str, more: tuple[str, ...]
) -> None:
    weir.create("s/one", key="k")
    assert "committed" in run(weir, how, master, *more)
    check_output(weir)


@pytest.mark.release
def test_an_output_of_which_an_executor_was_lost_is_left_and_written_again(
    weir: Installation,
) -> None:
    weir.create("s/one", key="k")
    assert "refused output_not_writable" in run(weir, "lose", "local-cluster[2,1,1024]")
    assert committed_folders(weir.database, "readers", "late") == []
    assert "committed" in run(weir, "lose", "local[2]")
    check_output(weir)
