"""Consumers that fail, are refused or are replaced publish nothing, and the next run goes on."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.committed_folders import committed_folders
from tests.raises import raises
from tests.spark.installation import Installation, batches, parquet_rows, plain
from weir.errors import BatchFailed
from weir.model.names import StreamName, stream_name
from weir.retention.garbage import sweep


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


def test_result_that_does_not_fit_its_stream_is_refused_by_column_and_nothing_is_published(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    weir.append(stream_name("s/out"), [("a", 1)])
    for function, says in (
        (lambda e: e.withColumn("_weir_x", F.lit(1)), "column_name_reserved '_weir_x'"),
        (lambda e: e.select("k", F.col("n").cast("string")), "column_type_differs 'n' string long"),
        (lambda e: e.select("n"), "routing_key_column_missing 'k'"),
        (
            lambda e: e.select(F.lit(None).cast("string").alias("k"), "n"),
            "batch_failed 90 routing key s/out on_missing_key",
        ),
    ):
        with raises(says):
            weir.consumer(group, function, "parquet:out", "stream:s/out").run()
    assert batches(weir) == [(1, "open", 4)]
    assert weir.query("SELECT FROM parquet_outputs") == []
    assert len(weir.check(stream_name("s/out"))) == 1
