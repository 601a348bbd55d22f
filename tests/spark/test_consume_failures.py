"""Consumers that fail, are refused or are replaced publish nothing, and the next run goes on."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.jobs import blocked_by, held_commits, wait_for
from tests.raises import raises
from tests.spark.installation import Installation, batches, parquet_rows, plain
from weir.annex.recovery.recover import recover
from weir.controller.ownership import read_installation
from weir.errors import BatchFailed, Fenced
from weir.model.names import StreamName, stream_name
from weir.retention.garbage import sweep
from weir.spark.consumers.reader import Reader
from weir.warehouse.marker import Marker, write_marker

NONSENSE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda events: None, "result_invalid NoneType"),
    (lambda events: events.collect(), "result_invalid list"),
    (
        lambda events: {"out": plain(events), "more": plain(events)},
        "result_invalid ['out']",
    ),
    (lambda events: {}, "result_invalid ['out']"),
    (lambda events: {"out": 5}, "result_invalid {'out': 'int'}"),
    (
        lambda events: {1: plain(events), None: 2},
        "result_invalid {'1': 'DataFrame', 'None': 'int'}",
    ),
]


@pytest.mark.release
@pytest.mark.parametrize(("function", "says"), NONSENSE)
def test_function_that_returns_nonsense_is_told_so_and_its_batch_stays_open(
    weir: Installation, stream: StreamName, function: Callable[[Any], Any], says: str
) -> None:
    group = weir.group(stream)
    with raises(says):
        weir.consumer(group, function, "parquet:out").run()
    assert batches(weir) == [(1, "open", 1)]
    assert weir.value("SELECT unread_events FROM lag") == 90


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


@pytest.mark.release
def test_outputs_are_checked_before_a_batch_is_opened(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    with raises("stream_not_found s/nowhere"):
        weir.consumer(group, plain, "stream:s/nowhere").run()
    for twice in (("parquet:out", "parquet:./out"), ("stream:s/out", "stream:s/out")):
        with raises("output_named_twice"):
            weir.consumer(group, plain, *twice)
    for wrong, says in (("tables:x", "output_invalid"),
                        ("parquet:../x", "path_not_allowed"), ("stream:out", "stream_name_invalid"),
                        ("stream:s/out.rejected", "stream_name_reserved")):  # fmt: skip
        with raises(says):
            weir.consumer(group, plain, wrong)
    assert batches(weir) == []


@pytest.mark.release
def test_lease_that_is_renewed_during_the_commit_does_not_fail_the_run(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    # The renewal waits for the commit, and then finds the append of the output no longer open.
    settings = replace(weir.settings, reader_lease=0.9, batch_events=45)
    weir = Installation(weir.spark, weir.database, settings)
    weir.put(stream, [(f"key {n % 11}", n) for n in range(90, 180)])
    group = weir.group(stream)
    with ThreadPoolExecutor(1) as pool, held_commits(test_database) as commits:
        run = pool.submit(weir.consumer(group, plain, "stream:s/out").run)
        [server] = wait_for("the commit", commits.waiting)
        wait_for("the renewal", lambda: blocked_by(test_database.dsn, server))
        commits.let_go()
        report = run.result()
    assert len(report["batches"]) > 1
    assert report["events"] == 180
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(180))


@pytest.mark.release
def test_reader_that_was_replaced_while_its_function_ran_is_refused(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    inner: list[Mapping[str, Any]] = []

    def slow(events: DataFrame) -> DataFrame:
        # The same task, tried again while its first process lives on.
        inner.append(weir.consumer(group, plain, "parquet:out", "stream:s/out").run())
        return plain(events)

    with pytest.raises(Fenced) as refused:
        weir.consumer(group, slow, "parquet:out", "stream:s/out").run()
    # Whichever comes first tells: the next renewal of its lease, or what it asks of its batch.
    assert refused.value.code in {"reader_replaced", "batch_taken_over", "attempt_fenced"}
    assert inner[0]["events"] == 90
    assert parquet_rows(weir, group, "out") == list(range(90))
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(90))
    assert batches(weir) == [(1, "committed", 2)]


@pytest.mark.release
def test_after_a_restore_a_consumer_opens_no_batch_and_writes_nothing(
    weir: Installation, stream: StreamName
) -> None:
    """The numbers of its batches, and their folders, were given out by the lost history."""
    group = weir.group(stream)
    known = read_installation(weir.database)
    marker = Marker(known.installation_id, known.sweep_count + 1)
    write_marker(weir.settings.warehouse, marker)
    called: list[DataFrame] = []

    def note(events: DataFrame) -> DataFrame:
        called.append(events)
        return plain(events)

    def program() -> None:
        with Reader(weir.spark, group, installation=weir.opened) as reader:
            next(reader)

    for run in (weir.consumer(group, note, "parquet:out").run, program):
        with raises("database_restored weir recover"):
            run()
    assert called == []
    assert batches(weir) == []
    assert weir.query("SELECT FROM reader") == []
    assert list(Path(weir.settings.output_roots[0]).iterdir()) == []
    recover(weir.database, weir.settings.warehouse, unknown_files="keep", request_id="recover")
    assert weir.consumer(group, note, "parquet:out").run()["events"] == 90


@pytest.mark.release
def test_a_manifest_that_cannot_be_written_keeps_nobody_from_committing_and_reading(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    root = Path(weir.settings.output_roots[0])
    in_the_way = root / f"out/group={group}/_manifest.json"
    (in_the_way / "folder").mkdir(parents=True)
    for unread in (90, 1):
        assert weir.value("SELECT unread_events FROM lag") == unread
        with raises("manifest_not_written _manifest.json parquet:out"):
            weir.consumer(group, plain, "parquet:out").run()
        assert [state for _, state, _ in batches(weir)].count("open") == 0
        assert weir.value("SELECT unread_events FROM lag") == 0
        weir.put(stream, [("more", 90)])
    assert any("_manifest.json of parquet:out" in said for said in weir.said)
    (in_the_way / "folder").rmdir()
    in_the_way.rmdir()
    weir.consumer(group, plain, "parquet:out").run()
    assert parquet_rows(weir, group, "out") == [*range(90), 90, 90]


@pytest.mark.release
def test_what_a_group_reads_is_no_output_of_its_consumer(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    with raises("output_is_input readers s/events"):
        weir.consumer(group, plain, f"stream:{stream}").run()
    assert weir.value("SELECT unread_events FROM lag") == 90
