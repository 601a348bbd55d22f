"""A disk that fills in the middle of a job: a sentence, nothing half done, and the job goes through
when there is space."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.small_disk import fill, mounted
from tests.spark.adjunct_world import WAYS, World
from tests.spark.installation import Installation
from weir.database.connection import Database
from weir.errors import WeirError
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.settings import Settings

pytestmark = pytest.mark.release
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


@pytest.mark.parametrize("job", JOBS)
def test_a_job_on_a_full_disk_says_so_and_goes_through_when_there_is_space(
    full: tuple[Installation, Path], job: str
) -> None:
    weir, disk = full
    for name in ("s/events", "s/results"):
        weir.create(name)
    weir.append(stream_name("s/results"), [("first", 0)])  # which writes the marker
    work = JOBS[job](weir)
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
    if job != "build":
        weir.check(stream_name("s/events"))
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
