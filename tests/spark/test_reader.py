"""A reader in a program of one's own: what a batch writes counts from its commit on, or never."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.jobs import execute, write_config
from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.groups import open_batch
from weir.installation.opened import Installation as Opened
from weir.model.names import StreamName, stream_name
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.groups.readers import join
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.outputs.tables import sweep_staging
from weir.spark import OpenBatch, Reader

ROWS = 60


@pytest.fixture
def stream(weir: Installation, test_database: TestDatabase) -> StreamName:
    """Events in three segments, a stream and a table for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 11}", n) for n in range(ROWS)])
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (k text, n bigint PRIMARY KEY);
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    return stream


@pytest.fixture(autouse=True)
def config(weir: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the settings as jobs do."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(weir.settings)))


@pytest.fixture
def group(weir: Installation, stream: StreamName) -> str:
    return weir.group(stream)


def read(weir: Installation, group: str, **options: Any) -> Reader:
    return Reader(weir.spark, group, **options)


def write_all(batch: OpenBatch[DataFrame]) -> None:
    """The events, into each kind of output."""
    rows = batch.events.select("k", "n").persist()
    for output in ("stream:s/out", "parquet:out", "table:public.results"):
        batch.write(output, rows)
    rows.unpersist()


def published(weir: Installation, group: str) -> Iterator[list[int]]:
    """The `n` in each kind of output."""
    yield sorted(row.n for row in weir.frame(stream_name("s/out")).collect())
    root = Path(weir.settings.output_roots[0])
    folders = [str(root / folder) for folder in committed_folders(weir.database, group, "out")]
    yield sorted(row.n for row in weir.spark.read.parquet(*folders).collect()) if folders else []
    yield [n for (n,) in weir.query("SELECT n FROM public.results ORDER BY n")]


def test_what_each_batch_writes_counts_with_its_commit(weir: Installation, group: str) -> None:
    reports = []
    with read(weir, group) as reader:
        for batch in reader:
            assert batch.events.columns == ["k", "n", "_segment", "_offset", "_clock"]
            assert batch.size == ROWS
            write_all(batch)
            assert list(published(weir, group)) == [[], [], []]
            reports.append(batch.commit())
    assert list(published(weir, group)) == [list(range(ROWS))] * 3
    [report] = reports
    assert (report["batch"], report["events"]) == (1, ROWS)
    assert report["tables"] == [{"table": "public.results", "rows": ROWS}]
    assert weir.value("SELECT unread_events FROM lag") == 0
    with read(weir, group) as reader:
        assert list(reader) == []
    assert weir.query("SELECT FROM readers") == []


@pytest.mark.release
def test_leaving_without_a_commit_publishes_nothing_and_the_next_gets_the_same_batch(
    weir: Installation, group: str
) -> None:
    with pytest.raises(ZeroDivisionError) as failed, read(weir, group) as reader:  # noqa: PT012 - the block is what is tested
        for batch in reader:
            write_all(batch)
            raise ZeroDivisionError
    note = r"batch 1 of group readers (s/events 0.0 from 0 to "
    assert failed.value.__notes__[0].startswith(note)
    with read(weir, group) as reader:
        next(reader)
    assert list(published(weir, group)) == [[], [], []]
    assert weir.query("SELECT FROM transaction WHERE state = 'open'") == []
    assert sweep_staging(weir.database) == [], "nothing is left of it"
    with read(weir, group) as reader:
        for batch in reader:
            assert (batch.batch_id, batch.attempt) == (1, 3)
            write_all(batch)
            batch.commit()
    assert list(published(weir, group)) == [list(range(ROWS))] * 3


@pytest.mark.release
def test_going_on_without_a_commit_is_refused(weir: Installation, group: str) -> None:
    with read(weir, group) as reader:
        next(reader)
        with raises("batch_not_committed batch 1"):
            next(reader)
    with raises("reader_not_entered with"):
        next(reader)


@pytest.mark.release
def test_an_output_is_written_once(weir: Installation, group: str) -> None:
    with read(weir, group) as reader:
        batch = next(reader)
        write_all(batch)
        rows = batch.events.select("k", "n").where("n < 5")
        for output in ("stream:s/out", "parquet:out/", "table:public.results"):
            with raises(f"output_written_twice {output} batch 1"):
                batch.write(output, rows)
        batch.commit()
        with raises("batch_over batch 1"):
            batch.write("parquet:out", rows)  # would overwrite what counts
    assert list(published(weir, group)) == [list(range(ROWS))] * 3


@pytest.mark.release
def test_a_commit_after_the_block_is_refused(weir: Installation, group: str) -> None:
    """What was written was given up at its end: the positions would move without it."""
    with read(weir, group) as reader:
        batch = next(reader)
        write_all(batch)
    with raises("batch_over batch 1 inside"):
        batch.commit()
    with read(weir, group) as reader:
        for again in reader:
            write_all(again)
            again.commit()
    assert list(published(weir, group)) == [list(range(ROWS))] * 3


def test_a_program_that_was_replaced_publishes_nothing(weir: Installation, group: str) -> None:
    with read(weir, group, reader_id="task") as reader:
        batch = next(reader)
        write_all(batch)
        with read(weir, group, reader_id="task") as again:  # while the first lives on
            taken = next(again)
            with raises("batch_taken_over batch 1 reader"):
                batch.commit()
            with raises("batch_taken_over batch 1 reader"):
                batch.write("parquet:late", batch.events.select("n"))
            assert (taken.batch_id, taken.attempt) == (1, 2)
            write_all(taken)
            taken.commit()
    assert list(published(weir, group)) == [list(range(ROWS))] * 3


@pytest.mark.release
def test_the_lease_is_renewed_while_a_program_computes(weir: Installation, group: str) -> None:
    short = Installation(weir.spark, weir.database, replace(weir.settings, reader_lease=3.0))
    with read(weir, group, installation=short.opened) as slow:
        batch = next(slow)
        wait_for_renewals(weir, 2)
        token = join(weir.database, group, "other", 60.0)
        everything = Budget.of(weir.settings)
        assert not open_batch(weir.database, group, "other", token, lease=3.0, budget=everything), (
            "there is nothing to take over"
        )
        batch.commit()


def wait_for_renewals(weir: Installation, count: int) -> None:
    """Until the lease of the only reader has been renewed so often."""
    seen: set[object] = set()
    end = time.monotonic() + 60
    while len(seen) <= count:
        assert time.monotonic() < end, "it is not renewed"
        seen |= {*weir.query("SELECT lease_until FROM reader WHERE lease_until < 'infinity'")}
        time.sleep(0.05)


@pytest.mark.release
def test_what_another_reader_has_is_waited_for(weir: Installation, group: str) -> None:
    with read(weir, group) as first, ThreadPoolExecutor(1) as pool:
        batch = next(first)

        def second() -> list[OpenBatch[DataFrame]]:
            with read(weir, group) as reader:
                return list(reader)

        waiting = pool.submit(second)
        time.sleep(1.5)
        assert not waiting.done()
        batch.commit()
        assert waiting.result(30) == []


@pytest.mark.release
def test_events_of_several_streams_are_asked_for_by_name(
    weir: Installation, stream: StreamName
) -> None:
    other = weir.create("s/other")
    weir.put(other, [("x", 1000)])
    group = weir.group(stream, other)
    with read(weir, group) as reader:
        batch = next(reader)
        assert batch.events_of("s/other").collect()[0].n == 1000
        assert batch.events_of("s/events").count() == ROWS
        for wrong in ("", "s/nowhere"):
            with raises("stream_not_read reads s/events, s/other name one"):
                batch.events_of(wrong)


@pytest.mark.release
def test_wrong_outputs_are_said_and_leave_the_batch_open(weir: Installation, group: str) -> None:
    with read(weir, group) as reader:
        batch = next(reader)
        for output, says in (
            ("s/out", "output_invalid"),
            ("stream:s/nowhere", "stream_not_found s/nowhere"),
            ("table:public.nowhere", "table_not_found public.nowhere"),
            ("table:public.results", "column_unknown '_segment'"),
        ):
            with raises(says):
                batch.write(output, batch.events.drop("_clock"))
        write_all(batch)
        batch.commit()
    assert list(published(weir, group)) == [list(range(ROWS))] * 3


@pytest.mark.release
def test_of_what_was_truncated_under_an_open_batch_the_heir_is_told_or_counts_it(
    weir: Installation, stream: StreamName, group: str
) -> None:
    facts = weir.facts(stream)
    ends = dict(facts.groupby("_segment").size())
    head = {"0.0": ends[0] // 2, "1.0": ends[1], "2.0": 0}
    left = facts[[o >= head[f"{s}.0"] for s, o in zip(facts._segment, facts._offset, strict=True)]]
    lost = ROWS - len(left)
    assert 0 < head["0.0"] < ends[0], "of one file a part is truncated"
    with read(weir, group, reader_id="first") as reader:
        next(reader)
    weir.truncate(stream, ", ".join(f"{name}={offset}" for name, offset in head.items()))
    says = f"events_truncated {lost} events s/events {ROWS} batch 1 {group} UTC hand on_gap skip"
    with raises(says), read(weir, group, reader_id="heir") as heir:
        next(heir)
    update_reader_group(weir.database, group, on_gap="skip", request_id="skip")
    with read(weir, group, reader_id="heir") as heir:
        for batch in heir:
            assert (batch.batch_id, batch.attempt, batch.size) == (1, 3, ROWS)
            write_all(batch)
            batch.commit()
    assert list(published(weir, group)) == [sorted(left["n"])] * 3
    assert weir.query("SELECT lost_events, unread_events FROM lag") == [(lost, 0)]


@pytest.mark.release
def test_a_reader_that_hangs_gives_way_to_others_and_one_that_works_does_not(
    weir: Installation, group: str
) -> None:
    def settled(longest: float) -> Opened:
        settings = replace(weir.settings, reader_lease=3.0, max_batch_time=longest)
        return replace(weir.opened, settings=settings)

    def taken(reader_id: str) -> Any:
        token = join(weir.database, group, reader_id, 60.0)
        return open_batch(
            weir.database, group, reader_id, token, lease=3.0, budget=Budget.of(weir.settings)
        )

    with read(weir, group, reader_id="works", installation=settled(60.0)) as reader:
        batch = next(reader)
        wait_for_renewals(weir, 3)
        assert taken("first") is None, "it renews its lease"
        with read(weir, group, reader_id="works", installation=settled(0.5)) as hangs:
            hung = next(hangs)
            assert hung.batch_id == batch.batch_id
            heir, end = None, time.monotonic() + 60
            while heir is None:
                assert time.monotonic() < end, "it keeps its batch"
                time.sleep(0.2)
                heir = taken("second")
            assert heir.batch_id == hung.batch_id
            with raises("batch_taken_over 'works'"):
                hung.commit()


@pytest.mark.release
def test_a_batch_of_an_aligned_group_knows_its_moment_and_holds_all_streams_to_it(
    weir: Installation, stream: StreamName
) -> None:
    other = weir.create("s/other", segments=2)
    weir.put(other, [("key", 1), ("other key", 2)])
    group = weir.group(stream, other, aligned=True, name="aligned")
    with read(weir, group, order="stream") as reader:
        weir.put(other, [("key", 3)])  # after the moment at which the run began
        [batch] = list(reader_commits(reader))
    assert batch.up_to is not None
    assert batch.size == ROWS + 2
    clocks = weir.query("SELECT max(clock), time_clock(:bound) FROM time_index", bound=batch.up_to)
    assert [last > bound for last, bound in clocks] == [True]
    assert [row.n for row in batch.events_of("s/other").collect()] == [1, 2]


def reader_commits(reader: Iterable[OpenBatch[DataFrame]]) -> Iterator[OpenBatch[DataFrame]]:
    for batch in reader:
        batch.commit()
        yield batch
