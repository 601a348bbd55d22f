"""A routing key means the same in whatever session, thread and setting the rows come from."""

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkFiles
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from tests.raises import raises
from tests.released import only
from tests.spark.installation import Installation, setting
from weir.model.names import StreamName
from weir.spark.base.session import private_session, resolving_session

ROWS = """SELECT id AS n, timestamp_seconds(1700000000 + id * 5000) AS t,
    CAST(id AS STRING) AS s FROM range(200)"""


def places(weir: Installation, stream: StreamName) -> dict[int, tuple[float, float]]:
    """Per event the key range of the segment it lies in."""
    facts = weir.facts(stream)
    return dict(zip(facts["n"], facts["_range"], strict=True))


@pytest.mark.release
def test_appends_of_several_threads_change_no_setting_of_their_session(
    weir: Installation,
) -> None:
    before = dict(weir.spark.conf.getAll)
    streams = [weir.create(f"s/thread{i}", key="t", segments=40) for i in range(4)]
    with setting(weir.spark, {"spark.sql.session.timeZone": "America/New_York"}):
        seen: list[dict[str, str]] = []
        threads = [
            threading.Thread(target=weir.append, args=(stream, weir.spark.sql(ROWS)))
            for stream in streams
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            seen.append(dict(weir.spark.conf.getAll))
            threads[0].join(0.01)
        for thread in threads:
            thread.join()
    assert all(one == {**before, "spark.sql.session.timeZone": "America/New_York"} for one in seen)
    assert len({tuple(sorted(places(weir, stream).items())) for stream in streams}) == 1
    assert len(places(weir, streams[0])) == 200


@pytest.mark.release
def test_rows_are_computed_under_the_settings_of_their_own_session(weir: Installation) -> None:
    stream = weir.create(key="upper(k)", segments=4)
    other = weir.spark.newSession()
    other.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    frame = other.createDataFrame(
        [("a", "2024-1-1 10"), ("b", "2024-12-31 9")], "k string, x string"
    )
    frame = frame.withColumn("t", F.expr("to_timestamp(x, 'yyyy-MM-dd HH')"))
    frame = frame.withColumn("day", F.expr("date_format(t, 'u')"))
    weir.append(stream, frame)
    read = weir.read(stream).sort_values("k")
    assert list(read["day"]) == ["1", "2"]  # u is the day of the week in the old patterns
    assert [str(t) for t in read["t"]] == ["2024-01-01 15:00:00", "2024-12-31 14:00:00"]


@pytest.mark.release
def test_an_observation_of_the_user_is_still_made(weir: Installation) -> None:
    stream = weir.create(key="s", segments=2)
    seen = Observation("mine")
    weir.append(stream, weir.spark.sql(ROWS).observe(seen, F.count(F.lit(1)).alias("rows")))
    assert seen.get == {"rows": 200}


def test_tasks_of_private_sessions_see_the_files_that_their_context_was_given(
    weir: Installation, tmp_path: Path
) -> None:
    given = tmp_path / f"{tmp_path.name}.txt"
    given.touch()
    weir.spark.sparkContext.addFile(str(given))

    def seen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = Path(SparkFiles.get(given.name)).is_file()
        yield pa.RecordBatch.from_pydict({"found": [found]})

    for private in (private_session(weir.spark), resolving_session(weir.spark)):
        rows = private.range(0, 1, 1, 1).mapInArrow(seen, "found boolean")
        assert rows.collect() == [(True,)]


IGNORING = {
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
}


def damage(path: Path) -> None:
    """Overwrite the middle of a file, where its pages are."""
    content = bytearray(path.read_bytes())
    middle = slice(len(content) // 4, len(content) // 2)
    content[middle] = bytes(len(content[middle]))
    path.write_bytes(bytes(content))


@pytest.mark.release
@pytest.mark.parametrize("order", ["none", "segment", "stream"])
def test_a_damaged_file_of_the_warehouse_stops_a_read_where_spark_is_told_to_ignore_it(
    weir: Installation, order: str
) -> None:
    stream = weir.create(segments=2)
    weir.append(stream, [(f"key {n * 7919 % 100_003}", n) for n in range(20_000)])
    (first, *_) = (row.path for row in weir.query("SELECT path FROM data_file"))
    path = Path(weir.settings.warehouse) / first
    content = path.read_bytes()
    reads: list[Callable[[DataFrame], object]] = [
        lambda frame: frame.collect(),
        lambda frame: frame.where("n >= 0").collect(),
    ]
    with setting(weir.spark, IGNORING):
        damage(path)
        for read in reads:
            with pytest.raises(Exception, match=path.name):
                read(weir.frame(stream, order))
        frame = weir.frame(stream, order)
        path.unlink()
        with pytest.raises(Exception, match=path.name):
            frame.collect()
    path.write_bytes(content)


_runs = itertools.count()


def evaluations(weir: Installation, shape: Callable[[DataFrame], DataFrame], segments: int) -> int:
    """How often the rows of a DataFrame are computed by an append."""
    counted = weir.spark.sparkContext.accumulator(0)

    def count(batches):  # type: ignore[no-untyped-def]  # a generator of Arrow batches
        for batch in batches:
            counted.add(batch.num_rows)
            yield batch

    stream = weir.create(f"s/run{next(_runs)}", segments=segments)
    rows = weir.spark.range(0, 10_000, 1, 4).select(F.col("id").alias("n"))
    rows = rows.mapInArrow(count, "n long").withColumn("k", F.col("n").cast("string"))
    committed = weir.append(stream, shape(rows))
    assert committed.events == 10_000
    return int(counted.value) // 10_000


@pytest.mark.parametrize("segments", only(16, of=[2, 16]))
def test_rows_are_computed_once(weir: Installation, segments: int) -> None:
    assert evaluations(weir, lambda rows: rows, segments) == 1
    assert evaluations(weir, lambda rows: rows.repartition(3, "n"), segments) == 1


@pytest.mark.release
@pytest.mark.parametrize("segments", [2, 16])
def test_rows_that_are_sorted_are_computed_as_often_as_spark_itself_does(
    weir: Installation, segments: int
) -> None:
    # Spark looks at the rows once to find the ranges, and once to sort them.
    assert evaluations(weir, lambda rows: rows.orderBy("n"), segments) == 2


def test_an_executor_whose_python_lacks_a_package_says_which(
    weir: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    subprocess.run(made, check=True)
    bare = str(tmp_path / "venv/bin/python")
    stream = weir.create()
    monkeypatch.setenv("PYSPARK_PYTHON", bare)  # a session that names its Python keeps it
    monkeypatch.setattr(weir.spark.sparkContext, "pythonExec", bare)
    with raises("executors_lack_package pyarrow spark.pyspark.python"):
        weir.append(stream, [("a", 1)])
    monkeypatch.undo()
    assert weir.append(stream, [("a", 1)]).events == 1
