"""Sensors: what they wait for, and that one statement asks for all that wait."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from tests.airflow.triggerer import Triggerer, in_a_loop
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.airflow import waiting
from weir.airflow.sensors import (
    GroupSensor,
    StoreSensor,
    StreamSensor,
    WeirSensor,
)
from weir.airflow.waiting import ConditionTrigger
from weir.controller.completeness import state_completeness
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(autouse=True)
def installed(test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    monkeypatch.setattr(waiting, "EVERY", 0.05)
    yield
    waiting._waiting.clear()


def waits(sensor: WeirSensor) -> ConditionTrigger:
    """What a task of the sensor waits for in the triggerer."""
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    path, given = deferred.value.trigger.serialize()
    assert path == "weir.airflow.waiting.ConditionTrigger"
    assert deferred.value.method_name == "resume"
    return ConditionTrigger(**given)


def is_met(database: Database, trigger: ConditionTrigger) -> bool:
    return waiting.answered(database, [trigger.condition]) == {trigger.condition: "met"}


def check(database: Database, make: Callable[[], WeirSensor], happen: Callable[[], Any]) -> None:
    """A task waits; once it has happened, it waits no longer, and neither does another one."""
    waited = waits(make())
    assert not is_met(database, waited)
    happen()
    assert is_met(database, waited)


def test_a_group_has_read_up_to_a_place_and_has_nothing_unread(database: Database) -> None:
    lane = Lane.made(database, event_time="at")
    group = Group.made(lane)
    name = group.name
    GroupSensor(task_id="a", reader_group=name).execute({})
    lane.append({"0.0": 2, "1.0": 3})
    [[now]] = lane.rows("SELECT clock_time(now_clock())")
    places = ("tail", str(now), f"time {now}", "0.0=2, 1.0=3")
    waited = [waits(GroupSensor(task_id="a", reader_group=name, up_to=p)) for p in places]
    soon = waits(GroupSensor(task_id="a", reader_group=name, up_to="2999-01-01"))
    nothing = waits(GroupSensor(task_id="b", reader_group=name, unread_at_most=0))
    GroupSensor(task_id="c", reader_group=name, unread_at_least=5).execute({})
    assert not any(is_met(database, one) for one in [*waited, nothing])
    group.reader().read_all()
    assert is_met(database, nothing)
    lane.append({"0.0": 1})  # what comes after the place does not matter
    assert all(is_met(database, one) for one in waited)
    assert not is_met(database, nothing)
    assert not is_met(database, soon), "more may be committed before then"
    check(
        database,
        lambda: GroupSensor(task_id="c", reader_group=name, unread_at_least=2),
        lambda: lane.append({"0.0": 1}),
    )
    group.checkpoint("noon")
    GroupSensor(task_id="a", reader_group=name, up_to="checkpoint noon").execute({})


def test_a_stream_is_complete_or_has_new_events(database: Database) -> None:
    lane = Lane.made(database, event_time="at")
    name = str(lane.name)
    day = "2013-06-02T00:00:00Z"
    check(
        database,
        lambda: StreamSensor(task_id="a", stream=name, complete_until=day),
        lambda: state_completeness(database, lane.name, "w", day),
    )
    check(
        database,
        lambda: StreamSensor(task_id="b", stream=name, new_events="3"),
        lambda: lane.append({"0.0": 3}),
    )


@pytest.mark.parametrize(
    ("sensor", "said"),
    [
        (GroupSensor(task_id="a", reader_group="nobody"), "no reader group nobody"),
        (GroupSensor(task_id="a", reader_group="no", unread_at_most=0), "no reader group no"),
        (StreamSensor(task_id="a", stream="no/where", complete_until="2013"), "no stream no/where"),
        (StoreSensor(task_id="a", adjunct_store="no/where"), "no adjunct store no/where"),
        (GroupSensor(task_id="a", reader_group="no", unread_at_most=-1), "unread_at_most is -1"),
        (GroupSensor(task_id="a", reader_group="no", unread_at_least="a few"), "at least 0"),
    ],
)
def test_what_cannot_come_about_fails_at_once(
    database: Database, sensor: WeirSensor, said: str
) -> None:
    with pytest.raises(AirflowFailException, match=said):
        sensor.execute({})


def test_a_sensor_waits_for_one_thing() -> None:
    with raises("arguments_conflict up_to unread_at_most"):
        GroupSensor(task_id="a", reader_group="totals", up_to="tail", unread_at_most=0)
    with raises("arguments_conflict new_events complete_until"):
        StreamSensor(task_id="a", stream="a/b", new_events=1, complete_until="2013")


def test_a_thousand_waiting_sensors_are_one_statement_of_a_triggerers_login(
    database: Database,
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lane, other = Lane.made(database), Lane.made(database)
    group = Group.made(lane)
    lane.append({"0.0": 1})
    triggers = [
        ConditionTrigger(kind="group", name=group.name, until=n)
        for n in range(10**17, 10**17 + 500)
    ] + [ConditionTrigger(kind="stream", name=str(lane.name), at_least=n) for n in range(2, 500)]
    few = [
        ConditionTrigger(kind="group", name=group.name, at_most=0),
        ConditionTrigger(kind="stream", name=str(other.name), at_least=1),
    ]
    dsn = postgres_server.dsn(test_database.name, "weir_watch")
    monkeypatch.setenv("WEIR_DATABASE", dsn)
    sent: list[list[str]] = []
    opened = Database.of

    def watched(settings: Any) -> Database:
        made = opened(settings)
        sent.append(count_statements(made))
        return made

    monkeypatch.setattr(Database, "of", watched)

    async def play() -> None:
        triggerer = Triggerer()
        triggerer.start(*triggers, *few)
        await triggerer.until(lambda: sent and len(sent[0]) > 3)
        assert triggerer.events == []
        group.reader().read_all()
        await triggerer.until(lambda: triggerer.events)
        assert triggerer.events == [(few[0], "met")]
        run(database, "UPDATE stream SET state = 'deleted', sealed_clock = 1 WHERE stream_id = :s",
            s=other.stream_id)  # fmt: skip
        await triggerer.until(lambda: len(triggerer.events) == 2)
        assert triggerer.events[1] == (few[1], "gone")
        await triggerer.stop()

    in_a_loop(play)
    [polls] = sent
    assert {one for one in polls if "progress_of" not in one} <= {"BEGIN", "COMMIT"}, polls[:5]
    assert not waiting._waiting
