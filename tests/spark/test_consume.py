"""Consumers: what a function makes of the events is published exactly once, or not at all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.committed_folders import committed_folders
from tests.raises import raises
from tests.spark.installation import Installation, parquet_rows, plain, setting
from weir.controller.update import update_stream
from weir.model.names import StreamName, stream_name


def test_function_gets_every_event_with_its_place_and_nothing_the_second_time(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    seen: list[Any] = []

    def note(events: DataFrame) -> DataFrame:
        assert events.columns == ["k", "n", "_segment", "_offset", "_clock"]
        seen.extend(events.collect())
        return plain(events)

    report = weir.consumer(group, note, "stream:s/out").run()
    facts = weir.facts(stream)
    assert sorted((r.n, r._segment, r._offset, r._clock) for r in seen) == sorted(
        zip(facts["n"], facts["_segment"], facts["_offset"], facts["_clock"], strict=True)
    )
    assert (report["events"], len(report["batches"])) == (90, 1)
    assert weir.consumer(group, note, "stream:s/out").run()["batches"] == []
    assert len(seen) == 90
    assert weir.value("SELECT unread_events FROM lag") == 0
    out = weir.check(stream_name("s/out"))
    assert sorted(out["n"]) == list(range(90))
    assert out["_segment"].nunique() > 2


@pytest.mark.release
@pytest.mark.parametrize("order", ["segment", "stream", "none"])
def test_consumer_reads_in_the_order_it_asks_for(
    weir: Installation, stream: StreamName, order: str
) -> None:
    weir.put(stream, [(f"key {n % 11}", n) for n in range(90, 130)])
    seen: list[Any] = []

    def note(events: DataFrame) -> DataFrame:
        seen.extend(events.collect())
        return plain(events)

    group = weir.group(stream)
    weir.consumer(group, note, "parquet:out", order=order).run()
    assert sorted(row.n for row in seen) == list(range(130))
    if order == "stream":
        assert [row.n for row in seen] == list(range(130))
    if order == "segment":
        for segment in range(3):
            offsets = [row._offset for row in seen if row._segment == segment]
            assert offsets == list(range(len(offsets)))


def moment() -> Column:
    """The nanosecond in which it is computed: another one whenever it is computed again."""
    return F.expr("java_method('java.lang.System', 'nanoTime')")


@pytest.mark.release
def test_several_outputs_get_each_their_own_of_the_same_events(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)

    def split(events: DataFrame) -> dict[str, DataFrame]:
        marked = plain(events)
        return {"s/out": marked, "all": marked, "odd": marked.where("n % 2 = 1")}

    weir.consumer(group, split, "stream:s/out", "parquet:all", "parquet:odd").run()
    assert parquet_rows(weir, group, "all") == list(range(90))
    assert parquet_rows(weir, group, "odd") == list(range(1, 90, 2))
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(90))


@pytest.mark.release
def test_events_are_read_once_for_several_outputs(weir: Installation, stream: StreamName) -> None:
    group = weir.group(stream)
    plans: list[str] = []

    def split(events: DataFrame) -> dict[str, DataFrame]:
        plans.append(events._jdf.queryExecution().executedPlan().toString())
        return {"one": plain(events), "two": plain(events)}

    java: Any = weir.spark.sparkContext._jsc
    before = set(java.getPersistentRDDs())  # of other tests, until Java collects them
    weir.consumer(group, split, "parquet:one", "parquet:two").run()
    assert "InMemoryTableScan" in plans[0]
    assert set(java.getPersistentRDDs()) <= before, "they are let go afterwards"


def test_one_result_goes_to_all_outputs_and_is_the_same_in_all(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)

    def timed(events: DataFrame) -> DataFrame:
        return events.select("k", "n", moment().alias("computed_at"))

    weir.consumer(group, timed, "stream:s/out", "parquet:one", "parquet:two").run()
    root = Path(weir.settings.output_roots[0])
    found = [sorted(weir.facts(stream_name("s/out"))["computed_at"])]
    for output in ("one", "two"):
        (folder,) = committed_folders(weir.database, group, output)
        rows = weir.spark.read.parquet(str(root / folder)).collect()
        found.append(sorted(row.computed_at for row in rows))
    assert found[0] == found[1] == found[2]


@pytest.mark.release
def test_group_of_several_streams_gives_the_function_a_frame_per_stream(
    weir: Installation, stream: StreamName
) -> None:
    other = weir.create("s/other")
    weir.put(other, [("x", 1000), ("y", 1001)])
    group = weir.group(stream, other)

    def both(events: dict[str, DataFrame]) -> DataFrame:
        assert sorted(events) == ["s/events", "s/other"]
        return plain(events["s/events"]).union(plain(events["s/other"]))

    report = weir.consumer(group, both, "parquet:out").run()
    assert report["events"] == 92
    assert parquet_rows(weir, group, "out") == [*range(90), 1000, 1001]
    weir.put(other, [("z", 1002)])  # one of them has nothing new: an empty frame
    assert weir.consumer(group, both, "parquet:out").run()["events"] == 1
    assert parquet_rows(weir, group, "out") == [*range(90), 1000, 1001, 1002]


@pytest.mark.release
def test_a_stream_without_an_event_has_the_columns_that_it_declares_or_is_named(
    weir: Installation, stream: StreamName
) -> None:
    other = weir.create("s/other")
    group = weir.group(stream, other)

    def both(events: dict[str, DataFrame]) -> DataFrame:
        return plain(events["s/events"]).union(plain(events["s/other"]))

    consumer = weir.consumer(group, both, "parquet:out")
    with raises("batch_failed (s/other"):
        consumer.run()
    fields = [
        {"name": "k", "type": "string", "nullable": True, "metadata": {}},
        {"name": "n", "type": "long", "nullable": True, "metadata": {}},
    ]
    update_stream(weir.database, other, {}, fields=fields, request_id="declare")
    assert consumer.run()["events"] == 90
    assert parquet_rows(weir, group, "out") == list(range(90))


@pytest.mark.release
def test_large_backlog_is_read_in_batches_within_the_budget(
    weir: Installation, stream: StreamName
) -> None:
    for start in range(90, 390, 30):
        weir.put(stream, [(f"key {n % 11}", n) for n in range(start, start + 30)])
    weir.scale(stream, ["0.0"], parts=2)
    weir.put(stream, [(f"key {n % 11}", n) for n in range(390, 420)])
    weir = Installation(weir.spark, weir.database, replace(weir.settings, batch_events=100))
    group = weir.group(stream)
    seen: dict[str, list[int]] = {}

    def note(events: DataFrame) -> DataFrame:
        for row in events.collect():
            seen.setdefault(row.k, []).append(row.n)
        return plain(events)

    report = weir.consumer(group, note, "parquet:out").run()
    assert len(report["batches"]) >= 3
    assert max(batch["events"] for batch in report["batches"]) <= 100
    assert parquet_rows(weir, group, "out") == list(range(420))
    assert all(ns == sorted(ns) for ns in seen.values()), (
        "a key's events come in order over batches"
    )


@pytest.mark.release
def test_times_in_parquet_are_the_same_for_all_readers_whatever_the_session_writes(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)

    def timed(events: DataFrame) -> DataFrame:
        # Nanoseconds, as INT96 is for other readers, end in 2262.
        late = F.expr("timestamp_seconds(32503680000 + n)").alias("late")
        early = F.expr("timestamp '1500-01-01 00:00:00'").alias("early")
        return events.select("n", late, early)

    theirs = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    }
    with setting(weir.spark, theirs):
        (batch,) = weir.consumer(group, timed, "parquet:out").run()["batches"]
    read = pq.read_table(batch["parquet"][0])  # as the report says where it is
    assert [read.schema.field(name).type for name in ("late", "early")] == [
        pa.timestamp("us", tz="UTC")
    ] * 2
    late, early = read.sort_by("n").slice(0, 1).select(["late", "early"]).to_pylist()[0].values()
    assert (late.year, late.month, early.year, early.month) == (3000, 1, 1500, 1)


def test_rows_that_a_result_stream_quarantines_are_published_with_the_batch(
    weir: Installation, stream: StreamName
) -> None:
    strict = weir.create("s/strict", on_missing_key="quarantine")
    group = weir.group(stream)

    def some(events: DataFrame) -> DataFrame:
        return events.select(F.expr("IF(n % 3 = 0, NULL, k)").alias("k"), "n")

    (batch,) = weir.consumer(group, some, "stream:s/strict").run()["batches"]
    assert [(s["stream"], s["events"], s["rejected"]) for s in batch["streams"]] == [
        ("s/strict", 60, 30), ("s/strict.rejected", 30, 0),
    ]  # fmt: skip
    assert len(weir.check(strict)) == 60
    assert len(weir.check(strict.rejected, key=None)) == 30


@pytest.mark.release
def test_result_without_rows_is_published_as_such(weir: Installation, stream: StreamName) -> None:
    group = weir.group(stream)
    outputs = ("parquet:out", "stream:s/out")
    report = weir.consumer(group, lambda events: plain(events).where("n < 0"), *outputs).run()
    assert report["events"] == 90
    assert parquet_rows(weir, group, "out") == []
    assert weir.value("SELECT unread_events FROM lag") == 0
