"""A consumer whose function fails: for the events it reads, or for something else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.groups import open_batch
from weir.controller.rejected import make_rejected_stream
from weir.errors import BatchFailed, InvalidInput, Unavailable, WeirError
from weir.model.names import StreamName
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.groups.readers import join
from weir.retention.garbage import sweep
from weir.spark.failures.causes import caused_by_events, sentence

ROWS = 24


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Events in two segments, and a stream for results."""
    stream = weir.create(segments=2)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 5}", n) for n in range(ROWS)])
    return stream


def failing(*bad: int) -> Callable[[DataFrame], DataFrame]:
    """A function whose Python code fails on these, on the executors."""

    def check(n: int) -> int:
        if n in bad:
            raise ValueError(f"I don't like {n}")
        return n

    return lambda events: events.select("k", F.udf(check, LongType())("n").alias("n"))


def states(weir: Installation) -> list[tuple[str, int]]:
    rows = weir.query("SELECT state, events FROM reader_batch ORDER BY batch_id")
    return [(row.state, row.events) for row in rows]


def parquet_rows(weir: Installation) -> list[int]:
    root = Path(weir.settings.output_roots[0])
    folders = [str(root / f) for f in committed_folders(weir.database, "readers", "out")]
    return sorted(row.n for row in weir.spark.read.parquet(*folders).collect()) if folders else []


def place(weir: Installation, stream: StreamName, n: int) -> tuple[str, int, list[int]]:
    """Where an event is, and what a batch reads before it."""
    facts = weir.facts(stream)
    [at] = facts.index[facts["n"] == n]
    return f"{facts['_segment'][at]}.0", int(facts["_offset"][at]), list(facts["n"][:at])


@pytest.mark.release
def test_split_commits_what_comes_before_the_failing_event_and_names_just_that(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    segment, offset, before = place(weir, stream, 11)
    named = (
        rf"batch \d+ of group readers \(s/events {segment} from {offset} to {offset + 1}; attempt 2"
        r"\) is the single event that fails .*: ValueError: I don't like 11"
    )
    for _ in range(2):  # trying again finds it at once
        with pytest.raises(BatchFailed, match=named + r"[^\n]*\[event_failed\]\n"):
            weir.consumer(group, failing(11), "parquet:out", on_error="split").run()
        assert parquet_rows(weir) == sorted(before)
        named = named.replace("attempt 2", r"attempt \d")
    assert weir.value("SELECT unread_events FROM lag") == ROWS - len(before)
    splits = [events for state, events in states(weir) if state == "split"]
    assert splits[:2] == [24, 12]
    assert len(splits) <= 5

    # Once it is mended, the rest is read as it was recorded, and each event is there once.
    weir.consumer(group, failing(), "parquet:out", on_error="split").run()
    assert parquet_rows(weir) == list(range(ROWS))
    assert [state for state, _ in states(weir)].count("split") == len(splits)
    sweep(weir.database, weir.settings.warehouse, 0.0)
    root = Path(weir.settings.output_roots[0])
    left = {str(p.relative_to(root)) + "/" for p in root.rglob("attempt=*")}
    assert left == set(committed_folders(weir.database, group, "out"))


def test_quarantine_sets_the_failing_events_aside_and_goes_on_in_the_order_of_each_key(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    seen: list[tuple[str, int]] = []

    def picky(events: DataFrame) -> DataFrame:
        rows = events.collect()
        for row in rows:
            if row.n in (7, 20):
                raise ValueError(f"I don't like {row.n}")
        seen.extend((row.k, row.n) for row in rows)
        return events.select("k", "n")

    report = weir.consumer(group, picky, "parquet:out", on_error="quarantine").run()
    good = [n for n in range(ROWS) if n not in (7, 20)]
    assert (report["events"], report["rejected"]) == (ROWS, 2)
    assert parquet_rows(weir) == sorted(n for _, n in seen) == good
    for key in {key for key, _ in seen}:
        of_key = [n for k, n in seen if k == key]
        assert of_key == sorted(of_key)
    rejected = weir.check(stream.rejected, key=None).sort_values("row")
    assert [tuple(row) for row in rejected[["row", "source", "place", "reason"]].values] == [
        (f'{{"k":"key {n % 5}","n":{n}}}', f"group readers, segment {place(weir, stream, n)[0]}",
         place(weir, stream, n)[1], f"ValueError: I don't like {n}")
        for n in (20, 7)
    ]  # fmt: skip
    assert weir.value("SELECT sum(rejected) FROM reader_batch WHERE state = 'committed'") == 2
    assert weir.value("SELECT unread_events FROM lag") == 0


@pytest.mark.release
def test_in_write_order_the_halves_are_read_as_they_were_written(
    weir: Installation, stream: StreamName
) -> None:
    # Each append is one file per segment and task, so its halves are found by the ranks of rows.
    group = weir.group(stream)
    weir.put(stream, [(f"key {n % 5}", n) for n in range(ROWS, 2 * ROWS)])
    weir.scale(stream, ["0.0"], parts=2)
    weir.put(stream, [(f"key {n % 5}", n) for n in range(2 * ROWS, 3 * ROWS)])
    seen: list[int] = []

    def picky(events: DataFrame) -> DataFrame:
        found = [row.n for row in events.collect()]
        if {7, 30, 60} & {*found}:
            raise ValueError("I don't like it")
        seen.extend(found)
        return events.select("k", "n")

    weir.consumer(group, picky, "parquet:out", on_error="quarantine", order="stream").run()
    assert seen == [n for n in range(3 * ROWS) if n not in (7, 30, 60)]
    assert weir.value("SELECT max(hole) FROM reader_batch") == 0


@pytest.mark.release
def test_rows_that_do_not_fit_their_table_are_set_aside_too(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (n bigint CHECK (n <> 101), k varchar(5));
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    group = weir.group(stream, start="tail")
    weir.put(stream, [("key", 100), ("key", 101), ("key", 102), ("a long key", 103)])
    report = weir.consumer(
        group, lambda e: e.select("k", "n"), "table:public.results", on_error="quarantine"
    ).run()
    assert (report["events"], report["rejected"]) == (4, 2)
    found = [n for (n,) in weir.query("SELECT n FROM public.results ORDER BY n")]
    assert found == [100, 102]
    check, length = sorted(weir.facts(stream.rejected)["reason"], key=lambda said: "long" in said)
    assert "violates check constraint" in check
    assert "value too long" in length


@pytest.mark.release
def test_what_fails_only_once_is_not_set_aside(weir: Installation, stream: StreamName) -> None:
    calls = []

    def flickering(events: DataFrame) -> DataFrame:
        calls.append(events.count())
        if len(calls) in (1, 2) or calls.count(1) == 1:  # also the first time an event is alone
            raise RuntimeError("once")
        return events.select("k", "n")

    weir.put(stream, [("x", ROWS)])
    group = weir.group(stream, start="tail")
    weir.put(stream, [("x", ROWS + 1), ("x", ROWS + 2)])
    report = weir.consumer(group, flickering, "parquet:out", on_error="quarantine").run()
    assert calls == [2, 1, 1, 1]
    assert (report["rejected"], parquet_rows(weir)) == (0, [ROWS + 1, ROWS + 2])


@pytest.mark.release
def test_what_was_killed_before_has_not_failed(weir: Installation, stream: StreamName) -> None:
    group = weir.group(stream, start="tail")
    weir.put(stream, [("x", ROWS)])
    token = join(weir.database, group, "reader", 60.0)
    everything = Budget.of(weir.settings)
    assert open_batch(weir.database, group, "reader", token, lease=60.0, budget=everything)
    calls = []

    def flickering(events: DataFrame) -> DataFrame:
        calls.append(events.count())
        if len(calls) == 1:
            raise RuntimeError("once")
        return events.select("k", "n")

    report = weir.consumer(group, flickering, "parquet:out", on_error="quarantine").run()
    assert (calls, report["rejected"], parquet_rows(weir)) == ([1, 1], 0, [ROWS])


def away(events: DataFrame) -> DataFrame:
    raise ConnectionError("the service does not answer")


def away_on_the_executors(events: DataFrame) -> DataFrame:
    def ask(n: int) -> int:
        raise ConnectionError("the service does not answer")

    return events.select("k", F.udf(ask, LongType())("n").alias("n"))


def says_it_is_away(events: DataFrame) -> DataFrame:
    raise Unavailable("service_unavailable", "the service does not answer")


def mistaken(events: DataFrame) -> DataFrame:
    return events.select("nothing")


def without_a_key(events: DataFrame) -> DataFrame:
    return events.select("n")


NOT_THE_EVENTS: list[tuple[Callable[[DataFrame], DataFrame], type[WeirError], str, bool]] = [
    (away, BatchFailed, "stays open: ConnectionError: the service does not answer", True),
    (away_on_the_executors, BatchFailed, "stays open: ConnectionError: the service does", True),
    (says_it_is_away, Unavailable, "^the service does not answer", True),
    (mistaken, BatchFailed, "stays open: .*nothing", False),
    (without_a_key, InvalidInput, "the rows have no column 'k'", False),
]


@pytest.mark.release
def test_what_is_not_the_events_fault_never_splits_a_batch(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    for function, error, says, retryable in NOT_THE_EVENTS:
        with pytest.raises(error, match=says) as failed:
            weir.consumer(group, function, "stream:s/out", on_error="quarantine").run()
        assert failed.value.retryable is retryable, function
    assert states(weir) == [("open", ROWS)]


@pytest.mark.release
def test_a_function_that_fails_on_everything_is_stopped(
    weir: Installation, stream: StreamName
) -> None:
    weir.settings = replace(weir.settings, rejected_events=2)

    def fails(events: DataFrame) -> DataFrame:
        raise RuntimeError("always")

    with raises("too_many_rejected readers 2 always") as failed:
        weir.consumer(weir.group(stream), fails, "stream:s/out", on_error="quarantine").run()
    assert not failed.value.retryable
    assert weir.value("SELECT unread_events FROM lag") == ROWS - 2


@pytest.mark.release
def test_a_stream_of_rejected_rows_has_nowhere_to_set_events_aside(
    weir: Installation, stream: StreamName
) -> None:
    make_rejected_stream(weir.database, stream)
    group = weir.group(stream.rejected, name="repairs")
    with raises("stream_name_reserved"):
        weir.consumer(group, failing(), "parquet:out", on_error="quarantine").run()
    with raises("argument_invalid on_error 'ignore' stop, split"):
        weir.consumer(group, failing(), "parquet:out", on_error="ignore")


ERRORS: list[tuple[str, bool, str]] = [
    ("cast(concat('a', id) AS int)", True, "[CAST_INVALID_INPUT]"),
    ("1 / (id - 1)", True, "[DIVIDE_BY_ZERO]"),
    ("raise_error('mine')", True, "[USER_RAISED_EXCEPTION] mine"),
    ("array(1)[id]", True, "[INVALID_ARRAY_INDEX]"),
    ("java_method('java.lang.System', 'exit', 'x')", False, ""),
]


def test_sparks_errors_are_told_apart(weir: Installation, tmp_path: Path) -> None:
    for expression, events, said in ERRORS:
        with pytest.raises(Exception, match=r"\S") as failed:
            weir.spark.range(3).selectExpr(f"{expression} AS x").collect()
        assert isinstance(failed.value, Exception)
        assert caused_by_events(failed.value) is events, expression
        assert sentence(failed.value).startswith(said)
    # A file that is gone, or damaged, is no fault of the events in it.
    weir.spark.range(3).write.parquet(str(tmp_path / "x"))
    frame = weir.spark.read.parquet(str(tmp_path / "x"))
    for path in (tmp_path / "x").glob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failed:
        frame.collect()
    assert not isinstance(failed.value, PySparkException)
    assert not caused_by_events(failed.value)
    error: Any = ValueError("two\nlines")
    assert sentence(error) == "ValueError: two"
    assert sentence(ValueError()) == "ValueError"
