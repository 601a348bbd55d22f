"""Hours and days of event time: announced when they are complete, and again for late events."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from tests.airflow.triggerer import Triggerer, in_a_loop
from tests.raises import raises
from tests.world.streams import rows, unique
from weir.airflow import partition, stream_days, stream_hours, watcher
from weir.annex.partitions import announcing
from weir.annex.partitions.announcing import AnnouncePartitions, RecordPartitions
from weir.annex.partitions.partitions import Partition, partition_asset
from weir.annex.partitions.triggers import PartitionsTrigger, WantedTrigger
from weir.controller.announcements import watch
from weir.controller.completeness import state_completeness
from weir.controller.streams import create_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import StreamName, stream_name
from weir.programs.opening import shared
from weir.settings import Settings

DAY = datetime(2013, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def installed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WEIR_STATE", str(settings.state))
    monkeypatch.setenv("WEIR_DATABASE", settings.database)
    monkeypatch.setenv("WEIR_WAREHOUSE", settings.warehouse)
    monkeypatch.setattr(watcher, "EVERY", 0.05)
    yield
    watcher.wanted.clear()


@pytest.fixture
def stream(database: Database) -> StreamName:
    name = stream_name(f"test/{unique('stream')}")
    create_stream(
        database, name, routing_key="key", segments=2, event_time="at", request_id=str(name)
    )
    return name


def append(stream: StreamName, *hours: float, complete_until: datetime | None = None) -> None:
    at = [DAY + timedelta(hours=hour) for hour in hours]
    table = pa.table({"key": [str(hour) for hour in hours], "at": at})
    shared().append(
        str(stream), table, writer_id="w", batch_id=unique("batch"), complete_until=complete_until
    )


def announce(
    fails: bool = False, between: Callable[[], object] = lambda: None, **payload: Any
) -> dict[str, dict[str, Any]]:
    """Run the two tasks; return per asset what they say in the events of each key."""
    event = SimpleNamespace(extra={"payload": payload}) if payload else SimpleNamespace(extra=None)
    made = OutletEventAccessors()
    task = AnnouncePartitions(task_id="announce")
    told = task.execute({"triggering_asset_events": {"a": [event]}, "outlet_events": made})
    between()
    said = {}
    for asset in task.outlets:
        one = made[asset]
        assert one.partition_keys == one.extra["partitions"].keys()
        said[asset.name] = dict(one.extra["partitions"])
    if not fails:
        ti = SimpleNamespace(xcom_pull=lambda task_ids: told)
        RecordPartitions(task_id="record").execute({"ti": ti})
    return said


def hour(number: int) -> str:
    return (DAY + timedelta(hours=number)).strftime("%Y-%m-%dT%H:%M:%S")


def test_each_complete_hour_is_announced_once_and_again_for_late_events(
    database: Database, stream: StreamName
) -> None:
    watch(database, "airflow", [("hours", str(stream)), ("days", str(stream))])
    name = f"weir {stream} hours"
    append(stream, 3.5, 4.2, 6.1)
    assert announce() == {}, "nothing is complete by arrival"
    append(stream, complete_until=DAY + timedelta(hours=5.5))
    assert list(announce(fails=True)[name]) == [hour(3), hour(4)]
    said = announce()[name]  # what was not recorded is announced again
    assert said == {
        hour(n): {
            "since": (DAY + timedelta(hours=n)).isoformat(),
            "until": (DAY + timedelta(hours=n + 1)).isoformat(),
            "late": 0,
        }
        for n in (3, 4)
    }
    assert announce() == {}
    state_completeness(database, stream, "w", DAY + timedelta(hours=5.9))
    assert rows(database, "SELECT FROM announcement") == [], "no hour is complete by that"
    append(stream, 3.1, 4.3, 4.4, 5.7, 5.95)  # one of them in an hour that is not complete
    assert {key: one["late"] for key, one in announce()[name].items()} == {hour(3): 1, hour(4): 2}
    state_completeness(database, stream, "w", DAY + timedelta(hours=24))
    both = announce()
    assert list(both[name]) == [hour(n) for n in range(5, 24)], "also those without events"
    assert list(both[f"weir {stream} days"]) == ["2013-06-01"]
    assert announce() == {}
    assert rows(database, "SELECT * FROM announcements") == []


def test_a_key_is_a_span_of_event_times_and_reads_exactly_its_events(
    database: Database, stream: StreamName
) -> None:
    append(stream, 3.0, 3.5, 4.0)
    append(stream, 2.99, 3.99)
    append(stream, 30.0)
    run = {"dag_run": SimpleNamespace(partition_key=hour(3)), "triggering_asset_events": {}}
    one = partition(run)
    assert (one.since, one.until) == (DAY + timedelta(hours=3), DAY + timedelta(hours=4))
    assert sorted(one.read(str(stream), ["key"])["key"].to_pylist()) == ["3.0", "3.5", "3.99"]
    assert Partition.of("2013-06-01").read(str(stream)).num_rows == 5
    assert Partition.of("2012-06-01").read(str(stream)).num_rows == 0
    for wrong in ("2013-06-01T10:30:00", "2013", "noon"):
        with raises("argument_invalid key"):
            Partition.of(wrong)
    late = SimpleNamespace(extra={"partitions": {hour(3): {"late": 2}}})
    assert partition({**run, "triggering_asset_events": {"a": [late, late]}}).late == 4


def test_hours_of_an_event_time_with_transforms_are_counted_and_read_alike(
    database: Database,
) -> None:
    name = stream_name(f"test/{unique('stream')}")
    create_stream(
        database, name, routing_key="key", segments=2, request_id=str(name),
        event_time="timestamp(concat(day, 'T', time))",
    )  # fmt: skip
    watch(database, "airflow", [("hours", str(name))])
    until = DAY + timedelta(hours=5)
    for times, complete in (("03:30", "04:10"), until), (("03:59:59", "noon", "05:00"), None):
        rows = [{"key": at, "day": "2013-06-01", "time": at} for at in times]
        shared().append(str(name), rows, writer_id="w", batch_id=unique("batch"),
                    complete_until=complete)  # fmt: skip
        said = announce()[f"weir {name} hours"]
    assert {key: one["late"] for key, one in said.items()} == {hour(3): 1}
    read = Partition.of(hour(3)).read(str(name), ["key"])
    assert read.column_names == ["key"]
    assert sorted(read["key"].to_pylist()) == ["03:30", "03:59:59"]


def test_hours_and_days_are_assets_whose_triggers_start_the_dag_that_announces_them(
    database: Database, stream: StreamName, tmp_path: Path
) -> None:
    hours, days = stream_hours(str(stream)), stream_days(str(stream))
    assert hours.uri == f"weir://{stream}/hours"
    assert partition_asset(str(stream), "days") == days

    async def play() -> None:
        triggerer = Triggerer()
        wanting = WantedTrigger(str(stream), "hours")
        triggerer.start(PartitionsTrigger(), wanting)
        await triggerer.until(lambda: rows(database, "SELECT FROM watch"))
        append(stream, 1.0, complete_until=DAY + timedelta(hours=2))
        await triggerer.until(lambda: triggerer.events)
        [(trigger, payload)] = triggerer.events
        assert isinstance(trigger, PartitionsTrigger)
        assert payload == {"partitions": [["hours", str(stream)]]}
        assert list(announce(**payload)[hours.name]) == [hour(1)]
        await triggerer.stop()
        assert len(triggerer.events) == 1

    in_a_loop(play)


def test_a_statement_that_is_taken_back_says_what_it_announced_and_that_is_announced_again(
    database: Database, stream: StreamName
) -> None:
    watch(database, "airflow", [("hours", str(stream))])
    name = f"weir {stream} hours"
    append(stream, 3.5, complete_until=DAY + timedelta(hours=4))
    append(stream, 4.5, complete_until=DAY + timedelta(hours=8))  # it meant 5
    assert list(announce()[name]) == [hour(n) for n in range(3, 8)]
    to = "2013-06-01T05:00:00Z"
    seen = update_stream(database, stream, {}, complete_until=to, dry_run=True, request_id="dry")
    done = update_stream(database, stream, {}, complete_until=to, request_id="back")
    assert done["taken_back"] == seen["taken_back"]
    assert len(done["taken_back"]) == 2
    assert re.search(
        "hours from 2013-06-01T05.* up to 2013-06-01T08.* airflow", done["taken_back"][1]
    )
    assert rows(database, "SELECT complete_until FROM completeness") == [(DAY + 5 * HOUR,)]
    append(stream, 5.5, 6.5, complete_until=DAY + timedelta(hours=7))
    assert {key: one["late"] for key, one in announce()[name].items()} == {hour(5): 0, hour(6): 0}
    assert announce() == {}


def test_all_statements_are_taken_back_while_their_hours_are_announced(
    database: Database, stream: StreamName
) -> None:
    watch(database, "airflow", [("hours", str(stream))])
    name = f"weir {stream} hours"
    append(stream, 3.5, complete_until=DAY + timedelta(hours=5))
    take_back = partial(update_stream, database, stream, {}, complete_until="none")
    announce(between=lambda: take_back(request_id="back"))
    state_completeness(database, stream, "w", DAY + timedelta(hours=4))
    assert list(announce()[name]) == [hour(3)]
    for wrong in ("2013-06-01T04:00:00Z", "2013-06-02", "done"):
        with raises("argument_invalid 2013-06-01T04:00:00Z back"):
            update_stream(database, stream, {}, complete_until=wrong, request_id=unique("back"))


FAR = [-24 * 366 * 2000, -24 * 366 * 40, -24 * 400, -24 * 32, 24 * 366 * 100]  # hours from DAY


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("together", [True, False], ids=["one-commit", "own-commit"])
def test_one_event_far_from_the_others_makes_no_hours_begin(
    database: Database, stream: StreamName, far: int, together: bool
) -> None:
    watch(database, "airflow", [("hours", str(stream)), ("days", str(stream))])
    name = f"weir {stream} hours"
    if together:
        append(stream, far, 3.5, 5.5)
    else:
        append(stream, far)
        append(stream, 5.5)
        append(stream, 3.5)
    append(stream, complete_until=DAY + timedelta(hours=6))
    said = announce()
    assert list(said) == [name], "no day is complete"
    assert list(said[name]) == [hour(3), hour(4), hour(5)]
    append(stream, far, complete_until=DAY + timedelta(hours=7))
    assert list(announce()[name]) == [hour(6)]
    append(stream, far + 0.1, 4.5)
    assert {key: one["late"] for key, one in announce()[name].items()} == {hour(4): 1}
    left = [row.left_out for row in rows(database, "SELECT left_out FROM announcements")]
    assert left.count(None) == 0
    assert bool(left) == (far < 0), "what is left out is said, and what is ahead is not complete"


@pytest.mark.parametrize("year", ["0001-01-01", "1969-12-31T23:00:00", "2000-01-01"])
def test_a_statement_of_long_ago_lets_no_later_one_announce_all_hours_since(
    database: Database, stream: StreamName, year: str
) -> None:
    watch(database, "airflow", [("hours", str(stream))])
    state_completeness(database, stream, "w", year)
    assert announce() == {}
    append(stream, 3.5, complete_until=DAY + timedelta(hours=5))
    assert list(announce()[f"weir {stream} hours"]) == [hour(3), hour(4)]


def test_late_hours_are_bounded_and_what_is_left_out_is_said(
    database: Database, stream: StreamName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing, "MOST", 5)
    watch(database, "airflow", [("hours", str(stream))])
    name = f"weir {stream} hours"
    append(stream, 3.5, complete_until=DAY + timedelta(hours=4))
    assert list(announce()[name]) == [hour(3)]
    append(stream, *[hour - 9 for hour in range(10)])
    assert list(announce()[name]) == [hour(n) for n in range(-4, 1)]
    [row] = rows(database, "SELECT left_out, announced, transaction_number FROM announcements")
    assert re.search("5 hours from 2013-05-31T15.* to 2013-05-31T19", row.left_out)
    assert (row.announced, row.transaction_number) == (False, None)


def test_an_hour_and_a_day_that_end_where_1970_begins_are_announced(
    database: Database, stream: StreamName
) -> None:
    watch(database, "airflow", [("hours", str(stream)), ("days", str(stream))])
    end = datetime(1970, 1, 1, tzinfo=UTC)
    table = pa.table({"key": ["a"], "at": [end - HOUR / 2]})
    shared().append(str(stream), table, writer_id="w", batch_id="1", complete_until=end)
    said = announce()
    assert list(said[f"weir {stream} hours"]) == ["1969-12-31T23:00:00"]
    assert list(said[f"weir {stream} days"]) == ["1969-12-31"]
    assert announce() == {}
