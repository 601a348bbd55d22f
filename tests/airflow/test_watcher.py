"""What the triggerer announces: each commit to a watched stream, whoever made it, until its event
is in Airflow's database, by Airflow's own shared streams and a login that may do nothing else."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from psycopg2 import errors

from tests.airflow.triggerer import Triggerer, in_a_loop
from tests.conftest import TestDatabase
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run
from weir.airflow import watcher
from weir.airflow.assets import stream_asset
from weir.airflow.watcher import StreamTrigger
from weir.controller.announcements import forget, to_announce
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.queries.controller.announcements import ToAnnounce


@pytest.fixture(autouse=True)
def triggerers_login(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """What triggers run with: the login of a triggerer, and a short wait between polls."""
    dsn = postgres_server.dsn(test_database.name, "weir_watch")
    monkeypatch.setenv("WEIR_DATABASE", dsn)
    monkeypatch.setattr(watcher, "EVERY", 0.05)
    yield dsn
    watcher.wanted.clear()


def drifting(database: Database) -> list[Any]:
    return rows(database, "SELECT * FROM announcements ORDER BY stream, transaction_number")


def watched(database: Database, count: int) -> Callable[[], bool]:
    return lambda: len(rows(database, "SELECT FROM watch")) == count


def test_a_stream_is_an_asset_that_is_watched() -> None:
    asset = stream_asset("shop/orders")
    assert (asset.name, asset.uri) == ("weir shop/orders", "weir://shop/orders")
    [one] = asset.watchers
    path, given = one.trigger.serialize()
    assert path == "weir.airflow.watcher.StreamTrigger"
    assert StreamTrigger(**given).serialize() == (path, given)


def test_each_commit_to_a_watched_stream_is_announced_once(database: Database) -> None:
    lane, other = Lane.made(database), Lane.made(database)
    lane.append({"0.0": 1})  # before anybody watches

    async def play() -> None:
        triggerer = Triggerer()
        triggerer.start(StreamTrigger(str(lane.name)), StreamTrigger("test/not-there-yet"))
        await triggerer.until(watched(database, 2))
        made = [lane.append({"0.0": 2, "1.0": 3}, source="a program") for _ in range(3)]
        other.append({"0.0": 1})
        await triggerer.until(lambda: triggerer.events and not drifting(database))
        told = [payload for _, payload in triggerer.events]
        assert [n for one in told for n in one["transactions"]] == [
            one.transaction_number for one in made
        ]
        assert sum(one["events"] for one in told) == 15
        assert sum(one["bytes"] for one in told) == sum(one.bytes for one in made)
        assert told[-1]["cut"] == lane.tail()
        assert (told[-1]["epoch"], told[-1]["run"]) == (0, ["a program"])

        late = Lane.made(database, name="test/not-there-yet")
        late.append({"0.0": 1})
        await triggerer.until(lambda: triggerer.events[-1][0].stream == "test/not-there-yet")
        await triggerer.until(lambda: not drifting(database))
        await triggerer.stop()
        assert len(triggerer.events) == len(told) + 1

    in_a_loop(play)


def test_what_is_not_in_airflows_database_is_announced_again(database: Database) -> None:
    lane = Lane.made(database)

    async def play() -> None:
        killed = Triggerer(persists=False)
        killed.start(StreamTrigger(str(lane.name)))
        await killed.until(watched(database, 1))
        first = lane.append({"0.0": 1})
        await killed.until(lambda: killed.events)
        await killed.stop()  # while Airflow writes the event
        [drifts] = drifting(database)
        assert (drifts.transaction_number, drifts.announced) == (first.transaction_number, False)
        second = lane.append({"0.0": 1})  # while no triggerer runs

        again = Triggerer()
        again.start(StreamTrigger(str(lane.name)))
        await again.until(lambda: not drifting(database))
        await again.stop()
        [(_, payload)] = again.events
        numbers = [first.transaction_number, second.transaction_number]
        assert payload["transactions"] == numbers, "merged into one event, and none of them lost"

    in_a_loop(play)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_triggerer_that_is_stopped_at_any_step_loses_nothing(
    database: Database, steps: int
) -> None:
    lane = Lane.made(database)

    async def play() -> None:
        stopped, told = Triggerer(), []
        stopped.start(StreamTrigger(str(lane.name)))
        await stopped.until(watched(database, 1))
        lane.append({"0.0": 1})
        seen = asyncio.Event()
        original = watcher.payload_of

        def payload_of(row: ToAnnounce) -> dict[str, Any]:
            seen.set()
            return original(row)

        watcher.payload_of = payload_of
        try:
            await seen.wait()
        finally:
            watcher.payload_of = original
        for _ in range(steps):
            await asyncio.sleep(0)
        await stopped.stop()
        told += stopped.events
        again = Triggerer()
        again.start(StreamTrigger(str(lane.name)))
        await again.until(lambda: not drifting(database))
        await again.stop()
        assert [n for _, one in [*told, *again.events] for n in one["transactions"]][:1] == [1]

    in_a_loop(play)


def test_one_statement_polls_for_all_streams_and_looks_at_those_that_moved(
    database: Database, test_database: TestDatabase
) -> None:
    lanes = [Lane.made(database, segments=1) for _ in range(3)]
    run(
        database,
        """INSERT INTO watch (stream_name, airflow, kind)
        SELECT 'test/idle' || n, 'airflow', 'events' FROM generate_series(1, 500) n""",
    )

    async def play() -> None:
        triggerer = Triggerer()
        for lane in lanes:
            triggerer.start(StreamTrigger(str(lane.name)))
        await triggerer.until(watched(database, 503))
        for lane in lanes:
            lane.append({"0.0": 1})
        await triggerer.until(lambda: len(triggerer.events) == 3 and not drifting(database))
        await triggerer.stop()

    in_a_loop(play)
    polled = test_database.open()
    lanes[0].append({"0.0": 1})
    sent = count_statements(polled)
    assert len(to_announce(polled, "airflow", [])) == 1
    assert len([one for one in sent if "to_announce" in one]) == 1, sent
    assert to_announce(polled, "airflow", [("events", str(lanes[0].name))]) == []


def test_several_airflows_are_told_each_and_one_that_is_gone_is_forgotten(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane.made(database)

    async def play() -> None:
        for name in ("one", "two"):
            monkeypatch.setenv("WEIR_AIRFLOW_NAME", name)
            triggerer = Triggerer()
            triggerer.start(StreamTrigger(str(lane.name)))
            await triggerer.until(watched(database, 1 if name == "one" else 2))
            await triggerer.stop()
        lane.append({"0.0": 1})
        assert [(one.airflow, one.announced) for one in drifting(database)] == [
            ("one", False), ("two", False),
        ]  # fmt: skip
        two = Triggerer()
        two.start(StreamTrigger(str(lane.name)))
        await two.until(lambda: len(drifting(database)) == 1)
        await two.stop()
        run(
            database,
            "UPDATE watch SET seen_at = seen_at - interval '31 days' WHERE airflow = 'one'",
        )
        assert forget(database) == [f"events of {lane.name} to one"]
        assert drifting(database) == []

    in_a_loop(play)


def test_what_is_announced_and_not_read_is_shown_with_who_has_not_read_it(
    database: Database,
) -> None:
    lane = Lane.made(database)
    group = Group.made(lane)

    async def play() -> None:
        triggerer = Triggerer()
        triggerer.start(StreamTrigger(str(lane.name)))
        await triggerer.until(watched(database, 1))
        lane.append({"0.0": 1})
        await triggerer.until(lambda: [one for one in drifting(database) if one.announced])
        [shown] = drifting(database)
        assert (shown.consumed, shown.unread_by) == (False, [group.name])
        group.reader().read_all()
        assert drifting(database) == []
        await triggerer.stop()

    in_a_loop(play)


def test_a_triggerers_login_can_watch_and_nothing_else(triggerers_login: str) -> None:
    connection = psycopg2.connect(triggerers_login)
    connection.autocommit = True
    cursor = connection.cursor()
    for refused in (
        "SELECT * FROM weir_internal.stream",
        "DELETE FROM weir_internal.announcement",
        "SELECT * FROM weir.lag",
        "SELECT weir_internal.state_completeness('s', 'n', 'w', 1)",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            cursor.execute(refused)
    connection.close()
