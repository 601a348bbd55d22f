"""Consumers: what a function makes of the events is published exactly once, or not at all."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.conftest import TestDatabase
from tests.crash.jobs import slow_commits
from tests.raises import raises
from tests.spark.installation import Installation, setting
from weir.controller.update import update_stream
from weir.errors import BatchFailed, Fenced
from weir.model.names import StreamName, stream_name
from weir.reader_groups.outputs import committed_folders
from weir.recovery.recover import recover
from weir.spark.reader import Reader
from weir.warehouse.garbage import sweep
from weir.warehouse.ownership import Marker, read_installation, write_marker

pytestmark = pytest.mark.drawn(5)

Function = Callable[[Any], Any]


def plain(events: DataFrame) -> DataFrame:
    """Each event, without its place."""
    return events.select("k", "n")


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Ninety events in three segments, and a stream for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=5)
    weir.append(stream, [(f"key {n % 11}", n) for n in range(90)])
    return stream


def parquet_rows(weir: Installation, group: str, output: str) -> list[int]:
    """The `n` of every row that counts in a Parquet output, by the record and by the manifest."""
    root = Path(weir.settings.output_roots[0])
    folders = committed_folders(weir.database, group, output)
    manifest = json.loads((root / output / f"group={group}/_manifest.json").read_text())
    assert manifest == {"group": group, "output": output, "folders": folders, "older": []}
    frame = weir.spark.read.parquet(*[str(root / folder) for folder in folders])
    return sorted(row.n for row in frame.collect())


def batches(weir: Installation) -> list[tuple[int, str, int]]:
    """Each batch: its number, its state and its attempts."""
    rows = weir.query("SELECT batch_id, state, attempt FROM reader_batch ORDER BY batch_id")
    return [tuple(row) for row in rows]


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


@pytest.mark.drawn(1)
@pytest.mark.parametrize("order", ["segment", "stream", "none"])
def test_consumer_reads_in_the_order_it_asks_for(
    weir: Installation, stream: StreamName, order: str
) -> None:
    weir.append(stream, [(f"key {n % 11}", n) for n in range(90, 130)])
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


def test_group_of_several_streams_gives_the_function_a_frame_per_stream(
    weir: Installation, stream: StreamName
) -> None:
    other = weir.create("s/other")
    weir.append(other, [("x", 1000), ("y", 1001)])
    group = weir.group(stream, other)

    def both(events: dict[str, DataFrame]) -> DataFrame:
        assert sorted(events) == ["s/events", "s/other"]
        return plain(events["s/events"]).union(plain(events["s/other"]))

    report = weir.consumer(group, both, "parquet:out").run()
    assert report["events"] == 92
    assert parquet_rows(weir, group, "out") == [*range(90), 1000, 1001]
    weir.append(other, [("z", 1002)])  # one of them has nothing new: an empty frame
    assert weir.consumer(group, both, "parquet:out").run()["events"] == 1
    assert parquet_rows(weir, group, "out") == [*range(90), 1000, 1001, 1002]


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


def test_large_backlog_is_read_in_batches_within_the_budget(
    weir: Installation, stream: StreamName
) -> None:
    for start in range(90, 390, 30):
        weir.append(stream, [(f"key {n % 11}", n) for n in range(start, start + 30)])
    weir.scale(stream, ["0.0"], parts=2)
    weir.append(stream, [(f"key {n % 11}", n) for n in range(390, 420)])
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


NONSENSE: list[tuple[Function, str]] = [
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


@pytest.mark.parametrize(("function", "says"), NONSENSE)
def test_function_that_returns_nonsense_is_told_so_and_its_batch_stays_open(
    weir: Installation, stream: StreamName, function: Function, says: str
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

    weir.append(stream, [("late", 90)])  # the batch keeps its bounds
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


def test_result_without_rows_is_published_as_such(weir: Installation, stream: StreamName) -> None:
    group = weir.group(stream)
    function: Function = lambda e: plain(e).where("n < 0")  # noqa: E731 - as short as the others
    report = weir.consumer(group, function, "parquet:out", "stream:s/out").run()
    assert report["events"] == 90
    assert parquet_rows(weir, group, "out") == []
    assert weir.value("SELECT unread_events FROM lag") == 0


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


def test_lease_that_is_renewed_during_the_commit_does_not_fail_the_run(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    # The renewal waits for the commit, and then finds the append of the output no longer open.
    settings = replace(weir.settings, reader_lease=0.9, batch_events=45)
    weir = Installation(weir.spark, weir.database, settings)
    weir.append(stream, [(f"key {n % 11}", n) for n in range(90, 180)])
    group = weir.group(stream)
    with slow_commits(test_database, 1.0):
        report = weir.consumer(group, plain, "stream:s/out").run()
    assert len(report["batches"]) > 1
    assert report["events"] == 180
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(180))


def test_reader_that_was_replaced_while_its_function_ran_is_refused(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    inner: list[dict[str, Any]] = []

    def slow(events: DataFrame) -> DataFrame:
        # The same task, tried again while its first process lives on.
        inner.append(weir.consumer(group, plain, "parquet:out", "stream:s/out").run())
        return plain(events)

    with pytest.raises(Fenced, match=r"taken over|replaced"):
        weir.consumer(group, slow, "parquet:out", "stream:s/out").run()
    assert inner[0]["events"] == 90
    assert parquet_rows(weir, group, "out") == list(range(90))
    assert sorted(weir.check(stream_name("s/out"))["n"]) == list(range(90))
    assert batches(weir) == [(1, "committed", 2)]


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
        with Reader(weir.spark, group, appender=weir.appender) as reader:
            next(reader)

    for run in (weir.consumer(group, note, "parquet:out").run, program):
        with raises("database_restored weir_recover"):
            run()
    assert called == []
    assert batches(weir) == []
    assert weir.query("SELECT FROM reader") == []
    assert list(Path(weir.settings.output_roots[0]).iterdir()) == []
    recover(weir.database, weir.settings.warehouse, unknown_files="keep", request_id="recover")
    assert weir.consumer(group, note, "parquet:out").run()["events"] == 90


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
        weir.append(stream, [("more", 90)])
    assert any("_manifest.json of parquet:out" in said for said in weir.said)
    (in_the_way / "folder").rmdir()
    in_the_way.rmdir()
    weir.consumer(group, plain, "parquet:out").run()
    assert parquet_rows(weir, group, "out") == [*range(90), 90, 90]


def test_what_a_group_reads_is_no_output_of_its_consumer(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    with raises("output_is_input readers s/events"):
        weir.consumer(group, plain, f"stream:{stream}").run()
    assert weir.value("SELECT unread_events FROM lag") == 90
