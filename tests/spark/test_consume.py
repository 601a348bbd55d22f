"""Consumers: what a function makes of the events is published exactly once, or not at all."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.committed_folders import committed_folders
from tests.raises import raises
from tests.spark.installation import Installation, batches, parquet_rows, plain
from tests.world.garbage import sweep
from weir.controller.update import update_stream
from weir.errors import BatchFailed
from weir.model.names import StreamName, stream_name
from weir.model.schema import new_field


def test_function_gets_every_event_with_its_place_in_order_and_nothing_the_second_time(
    weir: Installation, stream: StreamName
) -> None:
    weir.put(stream, [(f"key {n % 11}", n) for n in range(90, 130)])
    group = weir.group(stream)
    seen: list[Any] = []

    def note(events: DataFrame) -> DataFrame:
        assert events.columns == ["k", "n", "_segment", "_offset", "_clock"]
        seen.extend(events.collect())
        return plain(events)

    report = weir.consumer(group, note, "stream:s/out", order="stream").run()
    facts = weir.facts(stream)
    assert [row.n for row in seen] == list(range(130))
    assert sorted((r.n, r._segment, r._offset, r._clock) for r in seen) == sorted(
        zip(facts["n"], facts["_segment"], facts["_offset"], facts["_clock"], strict=True)
    )
    assert (report["events"], len(report["batches"])) == (130, 1)
    assert weir.consumer(group, note, "stream:s/out").run()["batches"] == []
    assert len(seen) == 130
    assert weir.value("SELECT unread_events FROM lag") == 0
    out = weir.check(stream_name("s/out"))
    assert sorted(out["n"]) == list(range(130))
    assert out["_segment"].nunique() > 2


def moment() -> Column:
    """The nanosecond in which it is computed: another one whenever it is computed again."""
    return F.expr("java_method('java.lang.System', 'nanoTime')")


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
        new_field("k", "string"),
        new_field("n", "long"),
    ]
    update_stream(weir.database, other, {}, fields=fields, request_id="declare")
    assert consumer.run()["events"] == 90
    assert parquet_rows(weir, group, "out") == list(range(90))


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


def test_function_that_fails_moves_nothing_and_the_next_run_resumes_the_same_batch(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    outputs = ("parquet:out", "stream:s/out")

    def fails_while_writing(events: DataFrame) -> DataFrame:
        failure = F.raise_error(F.lit("seventy-seven")).cast("long")
        return plain(events).withColumn(
            "n", F.when(F.col("n") == 77, failure).otherwise(F.col("n"))
        )

    def fails(events: DataFrame) -> DataFrame:
        raise RuntimeError("my own mistake")

    which = r"^batch 1 of group readers \(s/events 0.0 from 0 to \d+, .*; attempt 1\) failed and "
    with pytest.raises(BatchFailed, match=which + "stays open: RuntimeError: my own mistake"):
        weir.consumer(group, fails, *outputs).run()
    with pytest.raises(BatchFailed, match="seventy-seven"):
        weir.consumer(group, fails_while_writing, *outputs).run()
    assert batches(weir) == [(1, "open", 2)]
    assert weir.value("SELECT unread_events FROM lag") == 90
    assert weir.query("SELECT FROM parquet_outputs") == []
    assert weir.frame(stream_name("s/out")).collect() == []
    assert weir.query("SELECT FROM transaction WHERE state = 'open'") == []

    weir.put(stream, [("late", 90)])  # the batch keeps its bounds
    seen: list[int] = []

    def works(events: DataFrame) -> DataFrame:
        seen.append(events.count())
        return plain(events)

    report = weir.consumer(group, works, *outputs, reader_id="another reader").run()
    assert seen == [90, 1]
    assert [(b["batch"], b["attempt"]) for b in report["batches"]] == [(1, 3), (2, 1)]
    assert parquet_rows(weir, group, "out") == list(range(91))
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(91))

    sweep(weir.database, weir.settings.warehouse, 0.0)
    root = Path(weir.settings.output_roots[0])
    left = {str(p.relative_to(root)) + "/" for p in root.rglob("attempt=*")}
    assert left == set(committed_folders(weir.database, group, "out")), "failed attempts are gone"
    listed = {row.path for row in weir.query("SELECT path FROM data_file")}
    warehouse = Path(weir.settings.warehouse)
    assert {str(p.relative_to(warehouse)) for p in warehouse.rglob("*.parquet")} == listed
