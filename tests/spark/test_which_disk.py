"""An error says whose disk is full or read-only: that of warehouse, output, Spark or function."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import TestDatabase
from tests.crash.jobs import job, wait_for, write_config
from tests.raises import raises
from tests.small_disk import fill, mounted
from tests.spark.installation import Installation, parquet_rows
from weir.database.connection import Database
from weir.errors import WeirError
from weir.model.names import stream_name
from weir.settings import Settings
from weir.spark.failures.full_disks import full_disk

EVENTS = stream_name("s/events")
TABLE = """CREATE TABLE public.results (k text, n bigint, copy integer, text text);
    GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher"""
FULL, READ_ONLY = os.strerror(errno.ENOSPC), os.strerror(errno.EROFS)


def told(settings: Settings, error: BaseException) -> str:
    found = full_disk(settings, error)
    assert isinstance(found, WeirError)
    assert found.code == "disk_full"
    assert found.retryable
    return found.sentence


def test_a_disk_is_named_by_the_file_that_could_not_be_written(
    settings: Settings, tmp_path: Path
) -> None:
    def of(number: int, file: object = None) -> str:
        return told(settings, OSError(number, os.strerror(number), file))

    [out], warehouse = settings.output_roots, settings.warehouse
    assert f"the disk of the warehouse {warehouse} takes nothing" in of(28, f"{warehouse}/1/a")
    assert f"the disk of the output root {out} takes nothing" in of(28, f"{out}/results/a")
    assert "the disk of /mine/a takes nothing more" in of(28, "/mine/a")
    assert "the warehouse" not in of(28, f"{warehouse}-of-mine/a")
    assert f"the disk of the warehouse {warehouse} is read-only" in of(
        30, f"{warehouse}/b".encode()
    )
    assert "the disk of /mine is read-only" in of(errno.EROFS, "/mine")
    assert os.strerror(errno.EDQUOT) in of(errno.EDQUOT, "/mine")
    (tmp_path / "link").symlink_to(warehouse)
    assert f"the warehouse {warehouse} " in of(28, str(tmp_path / "link" / "a"))
    by_uri = replace(settings, warehouse=f"file://{warehouse}")
    assert "the disk of the warehouse file:" in told(by_uri, OSError(28, FULL, f"{warehouse}/a"))
    assert "Spark's local folders" in of(28, f"/x/blockmgr-{'0' * 8}-{'1' * 4}/0c/temp_shuffle")
    assert "nothing says which" in of(errno.ENOSPC)
    assert warehouse in of(errno.ENOSPC)
    in_words = f"Failed to open local file '/mine/a'. Detail: [errno 30] {READ_ONLY}"
    assert "the disk of /mine/a is" in told(settings, OSError(errno.EROFS, in_words))  # pyarrow
    assert full_disk(settings, FileNotFoundError(errno.ENOENT, "gone", "/mine/a")) is None
    later = ValueError("and so it failed")
    later.__cause__ = OSError(errno.ENOSPC, FULL, "/mine/a")
    assert "/mine/a" in told(settings, later)


@pytest.fixture
def three_disks(
    spark: SparkSession, database: Database, settings: Settings, tmp_path: Path
) -> Iterator[tuple[Installation, dict[str, Path]]]:
    """An installation whose warehouse, outputs and function have small disks of their own."""
    with (
        mounted(tmp_path / "lake", "4m") as lake,
        mounted(tmp_path / "out", "1m") as out,
        mounted(tmp_path / "mine", "1m") as mine,
    ):
        there = replace(settings, warehouse=str(lake), output_roots=(str(out),))
        weir = Installation(spark, database, there)
        weir.create("s/events")
        weir.create("s/results")
        weir.append(EVENTS, [(f"key {n}", n) for n in range(50)])
        weir.group(EVENTS)
        yield weir, {"lake": lake, "out": out, "mine": mine}


def of_driver(mine: Path) -> Callable[[DataFrame], DataFrame]:
    def function(events: DataFrame) -> DataFrame:
        (mine / "report").write_bytes(b"x" * 100_000)
        return events

    return function


def of_workers(mine: Path) -> Callable[[DataFrame], DataFrame]:
    report = str(mine / "report")

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with open(report, "wb") as file:
            for batch in batches:
                file.write(b"x" * 100_000)
                yield batch

    return lambda events: events.mapInArrow(copy, events.schema)


def of_spark(mine: Path) -> Callable[[DataFrame], DataFrame]:
    def function(events: DataFrame) -> DataFrame:
        events.write.mode("overwrite").parquet(str(mine / "a copy"))
        return events

    return function


def read_only(disk: Path, there: bool) -> None:
    """Let nothing be written to a disk, or again."""
    over = ["mount", "--bind", "-o", "ro", str(disk), str(disk)]
    subprocess.run(over if there else ["umount", str(disk)], check=True)


@pytest.mark.release
def test_a_function_that_meets_a_disk_of_its_own_hears_of_that_disk(
    three_disks: tuple[Installation, dict[str, Path]],
) -> None:
    weir, disks = three_disks
    mine = disks["mine"]
    for number, function in enumerate((of_driver, of_workers, of_spark)):
        weir.append(EVENTS, [("more", number)])
        consumer = weir.consumer("readers", function(mine), "stream:s/results")
        before = weir.value("SELECT count(*) FROM data_file")
        (mine / "report").unlink(missing_ok=True)
        fill(mine)
        with raises("disk_full") as full:
            consumer.run()
        # A file that is open already is named by the line that writes.
        whose = str(mine) if function is of_spark else f"{__file__}, line "
        assert whose in full.value.sentence
        assert FULL in full.value.sentence
        assert "warehouse" not in full.value.sentence
        (mine / "filler").unlink()
        read_only(mine, True)
        try:
            with raises(f"disk_full {mine}") as none:
                consumer.run()
        finally:
            read_only(mine, False)
        assert READ_ONLY in none.value.sentence
        assert "is read-only" in none.value.sentence
        assert "warehouse" not in none.value.sentence
        assert weir.value("SELECT count(*) FROM data_file") == before
        consumer.run()
    assert sorted(row["n"] for _, row in weir.read(stream_name("s/results")).iterrows()) == sorted(
        [*range(50), 0, 1, 2]
    )
    weir.check(EVENTS)


@pytest.mark.release
def test_the_disks_of_warehouse_and_outputs_are_told_apart(
    three_disks: tuple[Installation, dict[str, Path]],
) -> None:
    weir, disks = three_disks
    rows = weir.spark.createDataFrame([("a", n) for n in range(5)], "k string, n long")

    def append() -> Any:
        return weir.appender.append_frame("s/events", rows, writer_id="w", batch_id="b")

    consumer = weir.consumer("readers", lambda e: e, "parquet:results")
    for work, disk, whose in (
        (append, disks["lake"], f"the disk of the warehouse {disks['lake']} "),
        (consumer.run, disks["out"], f"the disk of the output root {disks['out']} "),
    ):
        fill(disk)
        with raises("disk_full") as full:
            work()
        assert f"{whose}takes nothing more ({FULL})" in full.value.sentence
        (disk / "filler").unlink()
        read_only(disk, True)
        try:
            with raises("disk_full") as none:
                work()
        finally:
            read_only(disk, False)
        assert f"{whose}is read-only ({READ_ONLY})" in none.value.sentence
        assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
        work()
    weir.check(EVENTS)


SPILLING = "-Dspark.testing.memory=472000000 -Dspark.memory.fraction=0.02"
# Where the small disk is, what else is set, what the function does, its output, and what is named.
PLACES = {
    "a shuffle": ("SPARK_LOCAL_DIRS", "", "shuffled", "parquet:results"),
    "a sort that spills": ("SPARK_LOCAL_DIRS", SPILLING, "sorted_wide", "parquet:results"),
    "what is kept": ("SPARK_LOCAL_DIRS", "", "kept", "parquet:results"),
    "rows for a table": ("TMPDIR", "", "wide", "table:public.results"),
}


@pytest.mark.release
@pytest.mark.parametrize("place", PLACES)
def test_a_consumer_whose_spark_has_no_space_left_says_so_and_goes_through_afterwards(
    weir: Installation, test_database: TestDatabase, tmp_path: Path, place: str
) -> None:
    variable, more, function, output = PLACES[place]
    with Database(test_database.owner_dsn, patience=0.0, connect_patience=0.0) as owner:
        owner.transaction(lambda c: c.exec_driver_sql(TABLE))
    weir.create(str(EVENTS))
    weir.append(EVENTS, [(f"key {n}", n) for n in range(200)])
    weir.group(EVENTS)
    config = write_config(weir.settings)
    arguments = {
        "reader_group": "readers", "function": f"tests.spark.wide_functions:{function}",
        "outputs": [output],
    }  # fmt: skip
    submit = {"SPARK_SUBMIT_OPTS": f"{os.environ['SPARK_SUBMIT_OPTS']} {more}"}
    with (
        mounted(tmp_path / "local", "5m") as local,
        job("process", arguments, config, **submit, **{variable: str(local)}) as full,
    ):
        assert full.wait() == 1
    [said] = [line for line in full.said.splitlines() if "weir: process failed:" in line]
    assert "[disk_full]" in said, said
    whose = str(local) if variable == "TMPDIR" else f"Spark's local folders ({local})"
    assert f"the disk of {whose} takes nothing more ({FULL})" in said
    committed = "SELECT count(*) FROM reader_batch WHERE state = 'committed'"
    assert weir.value(committed) == 0
    assert weir.value("SELECT count(*) FROM public.results") == 0
    assert weir.query("SELECT FROM pg_class WHERE relnamespace = 'weir_staging'::regnamespace"
                      " AND relkind = 'r'") == []  # fmt: skip
    with job("process", arguments, config, **submit) as done:
        assert done.wait() == 0
    assert weir.value(committed) == 1
    rows = (
        weir.value("SELECT count(*) FROM public.results") if output == "table:public.results"
        else len(parquet_rows(weir, "readers", "results"))
    )  # fmt: skip
    assert rows == (200_000 if function == "wide" else 200)


@pytest.mark.release
def test_a_job_whose_spark_can_not_start_for_its_local_folders_says_so(
    weir: Installation, tmp_path: Path
) -> None:
    weir.create(str(EVENTS))
    weir.append(EVENTS, [("a", 1)])
    weir.group(EVENTS)
    config = write_config(weir.settings)
    arguments = {
        "reader_group": "readers", "function": "tests.spark.wide_functions:shuffled",
        "outputs": ["parquet:results"],
    }  # fmt: skip
    with mounted(tmp_path / "local", "1m") as local:
        read_only(local, True)
        try:
            with job("process", arguments, config, SPARK_LOCAL_DIRS=str(local)) as none:
                assert none.wait() != 0
                # The JVM ends before its Python, and takes along what that prints.
                said = wait_for("error", lambda: weir.value("SELECT error FROM job_runs"))
        finally:
            read_only(local, False)
    assert f"Spark's local folders ({local}) is read-only ({READ_ONLY})" in said
    assert "[disk_full]" in said
