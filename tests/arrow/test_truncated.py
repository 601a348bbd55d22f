"""What is gone is said, wherever somebody looks for it without a JVM."""

import json
import re
import shlex
import warnings
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

import weir
from tests.chance import random_for
from tests.conftest import TestDatabase
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as terminal  # noqa: F401 - a fixture
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.programs.opening import shared
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.prune import prune
from weir.settings import Settings
from weir.spark.reads.source import WeirSource
from weir.warehouse.marker import Marker, write_marker


@pytest.fixture
def lane(database: Database, settings: Settings) -> Lane:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Lane.made(database, name="iot/small")


def now(lane: Lane) -> datetime:
    at: datetime = lane.value("SELECT clock_timestamp()")
    return at


def fill(settings: Settings, batch: str, count: int = 20) -> None:
    rows = pa.table({"key": [f"key {n}" for n in range(count)]})
    shared(settings).append("iot/small", rows, writer_id="w", batch_id=batch)


def truncate_all(lane: Lane) -> None:
    lane.truncate(", ".join(f"{name}={end}" for name, end in lane.tail().items()))


def test_reads_of_a_time_before_the_head_say_how_many_events_are_missing(
    lane: Lane, settings: Settings
) -> None:
    start = now(lane)
    fill(settings, "one", 20)
    middle = now(lane)
    fill(settings, "two", 5)
    lane.truncate(", ".join(f"{name}={end}" for name, end in lane.tail().items()))
    fill(settings, "three", 7)
    end = now(lane)
    store = shared(settings)
    asked: list[Callable[..., Any]] = [store.read, store.count]
    for span, gone, there in (
        ({"since": start}, 25, 7),
        ({"since": start, "until": middle}, 20, 0),
        ({"since": middle, "until": end}, 5, 7),
        ({"until": middle}, 20, 0),
    ):
        for ask in asked:
            with pytest.warns(weir.TruncatedWarning, match=rf"^{gone} events .* by hand"):
                found = ask("iot/small", **span)
            assert (found if isinstance(found, int) else found.num_rows) == there
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shared(settings).read("iot/small").num_rows == 7
        assert shared(settings).read("iot/small", since=end).num_rows == 0
        assert shared(settings).count("iot/small", until=start) == 0
        assert shared(settings).tail("iot/small").num_rows == 7
    truncate_all(lane)
    for ask in (store.read, store.tail, store.count):
        with pytest.warns(weir.TruncatedWarning, match="^32 events of stream iot/small"):
            ask("iot/small")


def test_what_a_terminal_finds_no_more_it_says(
    terminal: Callable[..., Done],  # noqa: F811
    lane: Lane,
    settings: Settings,
) -> None:
    start = now(lane).isoformat()
    assert "truncated" not in terminal("tail", "iot/small").err
    fill(settings, "one", 600)
    truncate_all(lane)
    until = now(lane).isoformat()
    for words in (
        ["tail", "iot/small"], ["read", "iot/small"],
        ["read", "iot/small", "--since", start, "--until", until],
    ):  # fmt: skip
        shown = terminal(*words)
        assert shown.status == 0
        assert "600 events of stream iot/small were truncated, the last of them at" in shown.err
        assert "truncated by hand" in shown.err
        told = terminal(*words, "--json")
        assert told.out == ""
        assert json.loads(told.err)["truncated"]["events"] == 600
    [why] = terminal("why", "iot/small", "--json").json["truncated"]
    assert (why["events"], why["rule"]) == (600, "by_hand")
    assert why["request_id"].startswith("truncate-")
    assert "What truncated last" in terminal("why", "iot/small").out
    assert "600 events" not in terminal("read", "iot/small", "--since", until).err


def test_an_end_before_the_head_is_refused_and_not_called_out_of_order(
    lane: Lane, settings: Settings
) -> None:
    fill(settings, "one", 20)
    before: Any = dict.fromkeys(lane.tail(), 1)
    truncate_all(lane)
    with raises("events_truncated 20 events iot/small"):
        shared(settings).read("iot/small", end=before)


@pytest.mark.parametrize("case", range(4))
def test_the_missing_events_are_counted_after_scales_and_pruning(
    lane: Lane, settings: Settings, case: int
) -> None:
    random = random_for("missing", case)
    times = [now(lane)]
    for step in range(10):
        fill(settings, f"{step}", random.choice([1, 3, 20]))
        if random.random() < 0.3:
            lane.scale(random.choice(lane.active()), parts=random.choice([1, 2]))
        times.append(now(lane))
    all_of_it = shared(settings).read("iot/small")["_clock"].to_pylist()
    cuts = [lane.value("SELECT stream_cut_at('iot/small', :t)", t=at) for at in times]
    truncated = 0
    for _ in range(3):
        truncated = random.randrange(truncated, len(times))
        lane.truncate(", ".join(f"{n}={end}" for n, end in cuts[truncated].items()))
        if random.random() < 0.5:
            prune(lane.database, 0)
        first, last = sorted(random.choices(times, k=2))
        left = set(shared(settings).read("iot/small")["_clock"].to_pylist())
        lower, upper = (round(at.timestamp() * 1_000_000) for at in (first, last))
        gone = sum(lower < clock <= upper and clock not in left for clock in all_of_it)
        row = lane.rows(
            "SELECT * FROM truncated_between('iot/small', :a, :b)", a=first, b=last
        )[0]  # fmt: skip
        assert row.events == gone
        assert (row.truncated_at is not None) == (gone > 0)
        assert lane.value("SELECT events FROM truncated_between('iot/small')") == sum(
            clock not in left for clock in all_of_it
        )
    for far in ("infinity", "-infinity", "0044-03-15 BC", "9999-12-31", "99999-01-01"):
        assert lane.value(
            "SELECT events >= 0 FROM truncated_between('iot/small', CAST(:f AS timestamptz))", f=far
        )


def test_of_several_truncations_the_one_that_took_the_last_missing_event_is_named(
    lane: Lane, settings: Settings
) -> None:
    start = now(lane)
    fill(settings, "one", 4)
    middle = now(lane)
    truncate_all(lane)
    between = now(lane)
    fill(settings, "two", 4)
    truncate_all(lane)
    asked = "SELECT truncated_at FROM truncated_between('iot/small', :a, CAST(:b AS timestamptz))"
    assert middle < lane.value(asked, a=start, b=middle) < between
    assert lane.value(asked, a=start, b=None) > between


def test_a_replay_of_a_day_that_is_partly_gone_begins_as_the_recipe_says(
    terminal: Callable[..., Done],  # noqa: F811
    lane: Lane,
    settings: Settings,
) -> None:
    page = (Path(__file__).parents[2] / "docs/recipes.md").read_text()
    recipe = page.split("\n## Replay yesterday\n")[1].split("\n## ")[0]
    [line] = re.findall(r"^weir (create-reader-group .*)$", recipe, re.MULTILINE)
    start = now(lane)
    fill(settings, "one", 20)
    truncate_all(lane)
    fill(settings, "two", 5)
    line = line.replace("2026-06-01T00:00:00Z", start.isoformat()).replace(
        "shop/orders", "iot/small"
    )
    words = shlex.split(line.replace("2026-06-02T00:00:00Z", now(lane).isoformat()))
    refused = terminal(*words)
    assert refused.status == 2
    said = "20 events of stream iot/small were truncated, the last of them at"
    assert said in refused.err
    assert "add --allow-truncated" in refused.err
    [flag] = re.findall(r"Add `(--[a-z-]+)`", recipe)
    done = terminal(*words, flag)
    assert done.status == 0, done.err
    assert f"{said}" in done.out + done.err
    assert "reading begins at the head" in done.out + done.err
    assert lane.value("SELECT unread_events FROM lag WHERE reader_group = 'replay'") == 5


def test_a_spark_source_that_skips_a_gap_says_how_large_it_was(
    terminal: Callable[..., Done],  # noqa: F811
    lane: Lane,
    settings: Settings,
) -> None:
    fill(settings, "one", 20)
    before, whole = dict.fromkeys(lane.tail(), 1), lane.tail()
    truncate_all(lane)
    fill(settings, "two", 5)
    gone = sum(whole.values()) - len(before)

    def source(on_gap: str) -> WeirSource:
        return WeirSource({"path": "iot/small", "start": json.dumps(before), "onGap": on_gap})

    batch = source("skip").reader(StructType())
    with pytest.warns(weir.TruncatedWarning, match=rf"^{gone} events .* by hand"):
        assert batch.partitions()
    stream = source("skip").streamReader(StructType())
    with pytest.warns(weir.TruncatedWarning, match=rf"^{gone} events .* by hand"):
        stream.partitions(before, lane.tail())
    failing = source("fail").streamReader(StructType())
    for limit in (ReadMaxRows(2), ReadAllAvailable()):
        with raises(f"events_truncated {gone} events hand"):
            failing.partitions(before, failing.latestOffset(before, limit))


def test_a_spark_source_of_a_time_before_the_head_is_refused_unless_gaps_are_skipped(
    lane: Lane, settings: Settings
) -> None:
    early = now(lane)
    fill(settings, "one", 20)
    truncate_all(lane)
    late = now(lane)
    fill(settings, "two", 5)
    path = {"path": "iot/small", "config": str(write_config(settings))}

    def batch(**options: Any) -> Any:
        parts = WeirSource({**path, **options}).reader(StructType([])).partitions()
        return sum(one.end_row - one.first_row for part in parts for one in part.slices)  # type: ignore[attr-defined]

    def first(**options: Any) -> Any:
        return WeirSource({**path, **options}).streamReader(StructType([])).initialOffset()

    for plan in (batch, first):
        with raises("events_truncated 20 iot/small hand"):
            plan(since=str(early))
        with pytest.warns(weir.TruncatedWarning, match="^20 events of stream iot/small .* by hand"):
            begun = plan(since=str(early), onGap="skip")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert begun == plan(since=str(late)) == plan()
        assert begun == 5 or sum(begun.values()) == 20
    with pytest.warns(weir.TruncatedWarning, match="^20 events"):
        assert batch(until=str(late)) == 0


def test_why_shows_the_last_truncations_and_the_last_one_that_lost_events(
    terminal: Callable[..., Done],  # noqa: F811
    lane: Lane,
    settings: Settings,
) -> None:
    group = Group.made(lane, start="head")
    for batch in range(6):
        fill(settings, f"{batch}", 10)
        truncate_all(lane)
        if batch == 0:
            reset_reader_group(lane.database, group.name, "tail", request_id="skip")
        elif batch == 1:
            delete_reader_group(lane.database, group.name, request_id="delete")
    truncate_all(lane)
    shown = terminal("why", "iot/small", "--json").json["truncated"]
    assert [one["events"] for one in shown] == [10] * 4, "of nothing is none"
    assert [one["lost"] for one in shown] == [{}, {}, {}, {group.name: 10}]


def test_who_asks_in_sql_for_a_time_before_the_head_is_warned(
    lane: Lane, settings: Settings, test_database: TestDatabase
) -> None:
    start = now(lane)
    fill(settings, "one", 20)
    middle = now(lane)
    truncate_all(lane)
    with closing(psycopg2.connect(test_database.dsn)) as connection, connection.cursor() as cursor:
        for asked, given, said in (
            ("weir.closed_cut_at('iot/small', %s)", [start], "20 events of .* after this time"),
            ("weir.count_between('iot/small', %s)", [start], "20 events of .* after this time"),
            ("weir.count_between('iot/small', %s, %s)", [start, middle], "20 events of .* between"),
            ("weir.count_between('iot/small', NULL, %s)", [middle], "20 events of .* between"),
            ("weir.closed_cut_at('iot/small', %s)", [middle], ""),
            ("weir.count_between('iot/small', %s)", [middle], ""),
        ):
            del connection.notices[:]
            cursor.execute(f"SELECT {asked}", given)
            told = "".join(connection.notices)
            assert re.search(f"^WARNING: +{said} .*by hand", told) if said else told == ""
