"""Deadlines that count from when the data of a run was there."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.serialization.decoders import decode_deadline_reference
from airflow.serialization.encoders import encode_deadline_reference

from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.airflow import GroupReadDeadline, StreamCompleteDeadline
from weir.airflow.plugin import WeirPlugin
from weir.annex.partitions.deadlines import DataDeadline
from weir.annex.partitions.partitions import since, until
from weir.controller.completeness import state_completeness
from weir.database.connection import Database

DAY = datetime(2013, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def installed(test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)


class Session:
    """Stands for Airflow's session, of which only the run is wanted."""

    def __init__(self, **run: Any) -> None:
        self._run = SimpleNamespace(
            **{"partition_key": None, "data_interval_end": None, "logical_date": None} | run
        )

    def query(self, _: Any) -> "Session":
        return self

    def filter_by(self, **_: Any) -> "Session":
        return self

    def one(self) -> Any:
        return self._run


def counts_from(reference: DataDeadline, **run: Any) -> datetime:
    """When a deadline begins, by what Airflow keeps of it."""
    kept = decode_deadline_reference(encode_deadline_reference(reference))
    at: datetime = kept.evaluate_with(
        session=Session(**run), interval=timedelta(0), dag_id="d", run_id="r"
    )
    return at


def test_a_deadline_counts_from_when_a_stream_was_complete(database: Database) -> None:
    lane = Lane.made(database, event_time="at")
    reference = StreamCompleteDeadline(str(lane.name))
    key = {"partition_key": "2013-06-01T10:00:00"}
    before = datetime.now(UTC)
    assert counts_from(reference, **key) >= before, "it is not complete: from now"
    state_completeness(database, lane.name, "w", DAY + timedelta(hours=10.5))
    now = datetime.now(UTC)
    assert counts_from(reference, **key) >= now, "nor is it to the end of the hour"
    state_completeness(database, lane.name, "w", DAY + timedelta(hours=11))
    assert now <= (stated := counts_from(reference, **key)) <= datetime.now(UTC)
    assert counts_from(reference, **key) == stated, "and stays there"
    done = lane.append({"0.0": 1})
    later = lane.append({"0.0": 1})
    run(
        database,
        "UPDATE transaction SET complete_until = :u WHERE stream_id = :s AND clock >= :c",
        u=10**16, s=lane.stream_id, c=later.clock,
    )  # fmt: skip
    run(database, "UPDATE transaction SET complete_until = NULL WHERE clock = :c", c=done.clock)
    at = counts_from(reference, data_interval_end=DAY + timedelta(hours=11))
    assert at == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=later.clock)


def test_a_deadline_counts_from_when_a_group_had_read_it(database: Database) -> None:
    lane = Lane.made(database, event_time="at")
    group = Group.made(lane)
    reference = GroupReadDeadline(group.name)
    state_completeness(database, lane.name, "w", DAY + timedelta(hours=11))
    lane.append({"0.0": 1})
    now = datetime.now(UTC)
    run_of_hour = {"logical_date": DAY + timedelta(hours=11)}
    assert counts_from(reference, **run_of_hour) >= now
    group.reader().read_all()
    read = datetime.now(UTC)
    assert now <= counts_from(reference, **run_of_hour) <= read


def test_a_run_is_made_although_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_DATABASE", "host=127.0.0.1 port=1 dbname=none")
    before = datetime.now(UTC)
    assert counts_from(StreamCompleteDeadline("a/b"), logical_date=DAY) >= before


def test_templates_know_the_span_of_a_key() -> None:
    assert {since, until} <= set(WeirPlugin.macros)
    assert (since("2013-06-01"), until("2013-06-01")) == (DAY, DAY + timedelta(days=1))
