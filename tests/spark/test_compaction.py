"""What Spark reads of compacted files, and of those of which events were erased: the same events,
places and order as pyarrow."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import weir as library
import weir.spark
from tests.annex.erasure.world import Erasing
from tests.chance import random_for
from tests.spark.installation import Installation
from weir.compaction import rewrite
from weir.programs.opening import shared
from weir.spark.reads import tasks

pytestmark = [
    pytest.mark.release,
    pytest.mark.filterwarnings("ignore::weir.TruncatedWarning"),
]
PLACES = ["_segment", "_offset", "_clock", "n"]


def rows(found: DataFrame | pa.Table, more: list[str] | None = None) -> list[tuple[Any, ...]]:
    names = [*PLACES, *(more or [])]
    if isinstance(found, pa.Table):
        return list(zip(*(found[name].to_pylist() for name in names), strict=True))
    return [tuple(row) for row in found.select(*names).collect()]


@pytest.fixture
def worlds(weir: Installation, monkeypatch: pytest.MonkeyPatch) -> tuple[Erasing, Erasing]:
    """Two streams whose commits alternate. Some of their files are compacted, in row groups that
    are so small that reads leave some out. Of compacted and of other files events were erased."""
    monkeypatch.setattr(rewrite, "ROWS_AT_ONCE", 20)
    made = [
        Erasing.made(
            weir.database, weir.settings, random_for("spark", i), name=f"s/w{i}", segments=3
        )
        for i in range(2)
    ]
    for _ in range(30):
        for world in made:
            world.change()
    for world in made:
        world.compact(thorough=True)
        world.erase("k1", "k5")
    for _ in range(4):
        for world in made:
            world.change()
    for world in made:
        assert world.erase("k2").events > 0
    several = [weir.value(
        "SELECT count(*) FROM data_file WHERE stream_name = :s AND transaction_number IS NULL",
        s=str(world.lane.name)) for world in made]  # fmt: skip
    assert min(several) > 0
    return made[0], made[1]


def test_spark_reads_compacted_files_as_pyarrow_does_in_every_order(
    weir: Installation, worlds: tuple[Erasing, Erasing], config: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(tasks, "_LARGE", 40)
    one, other = worlds
    name, spark = str(one.lane.name), weir.spark

    def by_spark(streams: Any = name, **how: Any) -> DataFrame:
        return library.spark.read(streams, spark=spark, settings=weir.settings, **how)

    def by_pyarrow(stream: str = name, **how: Any) -> list[tuple[Any, ...]]:
        return rows(shared(weir.settings).read(stream, **how))

    written = by_pyarrow(order="stream")
    in_order = by_spark(order="stream")
    assert "Exchange" not in in_order._jdf.queryExecution().executedPlan().toString()
    with_tasks = [tuple(row) for row in in_order.select(*PLACES, F.spark_partition_id()).collect()]
    assert [row[:-1] for row in with_tasks] == written
    assert len({row[-1] for row in with_tasks}) > 2
    by_segment = rows(by_spark(order="segment"))
    assert sorted(by_segment) == sorted(written)
    for segment in {row[0] for row in written}:
        mine = [row for row in by_segment if row[0] == segment]
        assert mine == sorted(mine, key=lambda row: row[1])
    assert sorted(rows(by_spark(order="none"))) == sorted(written)
    # A part of files, of which some row groups are left out.
    times = sorted({row[2] for row in written})
    low, high = (datetime.fromtimestamp(times[i] / 1e6) for i in (len(times) // 3, -3))
    span = {"since": f"{low.isoformat()}Z", "until": f"{high.isoformat()}Z"}
    part = by_pyarrow(order="stream", **span)
    assert 0 < len(part) < len(written)
    assert rows(by_spark(order="stream", **span)) == part
    assert sorted(rows(by_spark(order="none", **span))) == sorted(part)
    # Two streams as one.
    both = [str(world.lane.name) for world in worlds]
    wanted = [
        (clock, stream, i, n)
        for stream in both
        for i, (_, _, clock, n) in enumerate(by_pyarrow(stream, order="stream"))
    ]
    merged = by_spark(both)
    assert [(row._clock, row._stream, row.n) for row in merged.collect()] == [
        (clock, stream, n) for clock, stream, _, n in sorted(wanted)
    ]
    # The convenient way, in Python workers.
    source = spark.read.format("weir").options(config=config)
    assert sorted(rows(source.load(name))) == sorted(written)
    assert one.lane.stream_id != other.lane.stream_id
