"""An erasure and a compaction whose COMMIT is lost, or answered by nobody, are done once, and wait
for nobody. One that was killed is taken over by the same request."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.annex.erasure.test_everywhere import WHO, filled, where_it_is
from tests.annex.erasure.test_subject import copied
from tests.annex.erasure.world import Erasing
from tests.chance import random_for, some
from tests.compaction.test_beside import read
from tests.compaction.world import EVER
from tests.conftest import TestDatabase
from tests.crash.proxy import failing_network
from tests.raises import raises
from tests.world.streams import rows
from weir.annex.erasure.everywhere import Everywhere, Wanted
from weir.compaction import records
from weir.compaction.run import compact
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.settings import Settings

ENOUGH = 400  # COMMITs that no action has


def cut_at(dsn: str, number: int, fate: str, act: Callable[[Database], Any]) -> tuple[bool, Any]:
    """Act over a network that loses one COMMIT. Returns whether there was such a COMMIT, and what
    was returned."""
    fates = ["fine"] * number + [fate] + ["fine"] * ENOUGH
    with failing_network(dsn, fates) as (through, proxy):
        with Database(through, patience=20.0, connect_patience=10.0) as database:
            done = act(database)
        return bool(proxy.cuts), done


def commits_of(dsn: str, act: Callable[[Database], Any]) -> int:
    """Act, and count the COMMITs."""
    fates = ["fine"] * ENOUGH
    seen = iter(fates)
    with failing_network(dsn, fates) as (through, proxy):
        proxy._fates = seen
        with Database(through, patience=20.0, connect_patience=10.0) as database:
            act(database)
    return ENOUGH - len(list(seen))


def everywhere(store: StreamStore) -> str:
    """A stream as `filled` makes it, which is published and of which a group wrote an output."""
    name = filled(store, publish="iceberg")
    store.publish(streams=[name])
    copied(store, f"{name.replace('/', '-')}-w", name, {"parquet:plain": {"customer": "customer"}})
    return name


@pytest.mark.parametrize("fate", ["before", "after"])
def test_an_erasure_of_which_any_commit_is_lost_is_done_once_and_waits_for_nobody(
    store: StreamStore, settings: Settings, test_database: TestDatabase, fate: str
) -> None:
    long = replace(settings, transaction_lease=3600.0)  # who waits for it gives up

    def erasing(name: str, database: Database) -> Any:
        whole = Everywhere(database, long, Wanted(stream_name(name), (WHO,)))
        return whole.erase(f"d/r/{name}", "me", "asked", lambda _line: None)

    erasing(everywhere(store), store.database)  # the first one makes the key that signs
    counted = everywhere(store)
    number = commits_of(test_database.dsn, lambda d: erasing(counted, d))
    assert number > 10
    for moment in some(range(number), f"COMMITs that are lost ({fate})", least=8):
        name = everywhere(store)
        cut, done = cut_at(test_database.dsn, moment, fate, lambda d, n=name: erasing(n, d))  # type: ignore[misc]  # the loop's own
        assert cut, moment
        assert (done["events"], done["signed"]) == (8, True), (moment, done["waits_for"])
        assert [*done["outputs"].values()] == [3], moment
        assert [store.count(name), store.count(f"{name}-by-n")] == [6, 6], moment
        found = "SELECT sum(events) AS n FROM weir.erasures WHERE request = :r"
        assert rows(store.database, found, r=f"d/r/{name}")[0].n == 8, moment
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []


@pytest.mark.parametrize("fate", ["before", "after"])
def test_a_compaction_of_which_any_commit_is_lost_is_done_once(
    database: Database, settings: Settings, test_database: TestDatabase, fate: str
) -> None:
    world = Erasing.made(database, settings, random_for("lost answers", fate))

    def compacting(through: Database) -> Any:
        return compact(through, settings, EVER, [world.lane.name], thorough=True)

    for moment in range(ENOUGH):
        for _ in range(3):
            world.append()
        before = read(world)
        cut, done = cut_at(test_database.dsn, moment, fate, compacting)
        if not cut:
            break
        assert [one.keys() >= {"files_after"} for one in done] == [True], (moment, done)
        assert read(world) == before
        assert not world.lane.rows("SELECT * FROM compaction WHERE state = 'open'"), moment
    assert moment > 3


def test_the_same_request_takes_over_what_a_killed_try_has_begun_and_another_waits(
    database: Database, settings: Settings
) -> None:
    world = Erasing.made(database, settings, random_for("taken over"))
    world.append()

    def begin(holder: str | None, token: str | None) -> int | None:
        return database.transaction(
            lambda c: records.begin(c, world.lane.stream_id, 600.0, holder, token)
        )

    first = begin("a request", "1")
    assert first is not None
    assert begin("a request", "1") == first, "asked again, as its answer was lost"
    assert begin("another request", "2") is None
    assert begin(None, None) is None
    second = begin("a request", "3")
    assert second is not None
    assert second > first
    states = world.lane.rows("SELECT number, state FROM compaction ORDER BY number")
    assert [(one.number, one.state) for one in states] == [(first, "aborted"), (second, "open")]
    [folder] = world.lane.rows("SELECT path FROM garbage WHERE stream_id = :s")
    assert folder.path == records.folder_of(world.lane.stream_id, first)
    with raises("attempt_fenced compaction"):
        database.transaction(lambda c: records.swap(c, world.lane.stream_id, first, []))
