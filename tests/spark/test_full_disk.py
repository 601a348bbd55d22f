"""A disk that fills in the middle of a job: a sentence, nothing half done, and the job goes through
when there is space."""

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

from tests.conftest import TestDatabase
from tests.crash.jobs import job, write_config
from tests.small_disk import fill, mounted
from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation, parquet_rows
from weir.database.connection import Database
from weir.errors import WeirError
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.settings import Settings
from weir.spark.failures.full_disks import full_disk

EVENTS = stream_name("s/events")
TABLE = """CREATE TABLE public.results (k text, n bigint, copy integer, text text);
    GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher"""
FULL = os.strerror(errno.ENOSPC)
ROWS = [(f"key {n % 11}", n) for n in range(50)]


@pytest.fixture
def full(
    spark: SparkSession, database: Database, settings: Settings, tmp_path: Path
) -> Iterator[tuple[Installation, Path]]:
    """An installation whose warehouse and outputs lie on a small disk."""
    with mounted(tmp_path / "small", "4m") as disk:
        (disk / "out").mkdir()
        there = replace(settings, warehouse=str(disk / "lake"), output_roots=(str(disk / "out"),))
        yield Installation(spark, database, there), disk


def by_pyarrow(weir: Installation) -> Callable[[], Any]:
    rows = pa.table({"k": [k for k, _ in ROWS], "n": [n for _, n in ROWS]})
    return lambda: shared(weir.settings).append("s/events", rows, writer_id="w", batch_id="b")


def by_frame(weir: Installation) -> Callable[[], Any]:
    frame = weir.spark.createDataFrame(ROWS, "k string, n long")
    return lambda: weir.appender.append_frame("s/events", frame, writer_id="w", batch_id="b")


def by_files(weir: Installation) -> Callable[[], Any]:
    file = Path(weir.input, "rows.csv")
    file.write_text("k,n\n" + "".join(f"{k},{n}\n" for k, n in ROWS))
    stream = stream_name("s/events")
    return lambda: weir.ingest(stream, ["rows.csv"], "csv")


def consuming(output: str) -> Callable[[Installation], Callable[[], Any]]:
    def made(weir: Installation) -> Callable[[], Any]:
        stream = stream_name("s/events")
        weir.append(stream, ROWS)
        group = weir.group(stream)
        return lambda: weir.consumer(group, lambda events: events, output).run()

    return made


def building(weir: Installation) -> Callable[[], Any]:
    world = World.made(weir, segments=1)
    store = world.store(WAYS["whole"])
    world.append([(k, n, "x") for k, n in ROWS])
    return store.build


JOBS: dict[str, Callable[[Installation], Callable[[], Any]]] = {
    "append by pyarrow": by_pyarrow, "append of a frame": by_frame, "append of files": by_files,
    "consumer with a stream": consuming("stream:s/results"),
    "consumer with Parquet": consuming("parquet:results"), "build": building,
}  # fmt: skip


@pytest.mark.release
@pytest.mark.parametrize("name", JOBS)
def test_a_job_on_a_full_disk_says_so_and_goes_through_when_there_is_space(
    full: tuple[Installation, Path], name: str
) -> None:
    weir, disk = full
    for stream in ("s/events", "s/results"):
        weir.create(stream)
    weir.append(stream_name("s/results"), [("first", 0)])  # which writes the marker
    work = JOBS[name](weir)
    before = weir.value("SELECT count(*) FROM data_file")
    fill(disk)
    for _ in range(2):
        with pytest.raises(WeirError, match=r"[Nn]o space left on device") as failed:
            work()
        assert failed.value.code.endswith(("disk_full", "batch_failed"))
        assert failed.value.retryable
        assert "Py4J" not in str(failed.value)
    assert weir.value("SELECT count(*) FROM data_file") == before, "nothing half done"
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    (disk / "filler").unlink()
    work()
    if name != "build":
        weir.check(stream_name("s/events"))
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


SPILLING = "-Dspark.testing.memory=472000000 -Dspark.memory.fraction=0.02"
# Where the small disk is, what else is set, what the function does, and its output.
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
    assert FULL in said
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


class Java:
    """An exception of Java's."""

    def __init__(self, kind: str, message: str, cause: "Java | None" = None) -> None:
        self._kind, self._message, self._cause = kind, message, cause

    def getClass(self) -> "Java":
        return self

    def getName(self) -> str:
        return self._kind

    def getMessage(self) -> str:
        return self._message

    def getCause(self) -> "Java | None":
        return self._cause


def of_java(*causes: tuple[str, str]) -> PySparkException:
    error, java = PySparkException("Job aborted"), None
    for kind, message in reversed(causes):
        java = Java(kind, message, java)
    error._origin = java  # type: ignore[attr-defined]
    return error


def because_of(cause: Exception) -> Exception:
    error = ValueError("and so it failed")
    error.__cause__ = cause
    return error


IN_WORDS = f"Failed to open local file '/mine/a'. Detail: [errno 30] {os.strerror(30)}"
SAYINGS: list[tuple[BaseException, str]] = [
    (OSError(errno.ENOSPC, FULL, "/mine/a"), f"{FULL}: '/mine/a')"),
    (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), os.strerror(errno.EDQUOT)),
    (OSError(errno.EROFS, IN_WORDS), "'/mine/a'"),  # of pyarrow
    (because_of(OSError(errno.ENOSPC, FULL, "/mine/a")), "/mine/a"),
    (PythonException(f"Traceback:\nOSError: [Errno 28] {FULL}: '/mine/a'\n"), "/mine/a"),
    (of_java(("java.lang.X", "failed"), ("java.io.IOException", f"/mine/a ({FULL})")), "/mine/a"),
    (of_java(("org.apache.spark.memory.Y", f"[SPILL_OUT_OF_MEMORY] no:\n {FULL}")), FULL),
]  # fmt: skip


@pytest.mark.parametrize(("error", "says"), SAYINGS, ids=map(str, range(len(SAYINGS))))
def test_whoever_meets_a_full_disk_hears_so_with_the_file(error: BaseException, says: str) -> None:
    found = full_disk(error)
    assert found is not None
    assert (found.code, found.retryable) == ("disk_full", True)
    assert says in found.sentence


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "gone", "/mine/a"),
        of_java(("org.postgresql.util.PSQLException", f"could not extend file: {FULL}")),
        PythonException(f"psycopg2.errors.DiskFull: could not extend file: {FULL}"),
    ],
)
def test_the_full_disk_of_a_database_is_another_matter(error: BaseException) -> None:
    assert full_disk(error) is None
