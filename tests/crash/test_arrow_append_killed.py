"""An append of pyarrow that is killed at any point and tried again: each row is there once."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import weir
from tests.chance import some
from tests.conftest import TestDatabase
from tests.controller.operations import Operation
from tests.crash.fault_points import kill_at, moments_of
from tests.crash.forks import Child, children
from tests.crash.jobs import blocked_by, execute, held_commits, wait_for
from tests.world.garbage import sweep
from tests.world.streams import unique
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.settings import Settings

ROWS = [{"k": f"key {n % 7}", "n": n} for n in range(50)]
FILES = "SELECT path FROM data_file"


@pytest.fixture
def store(database: Database, settings: Settings) -> weir.StreamStore:
    """An installation of which other processes append to its streams, too."""
    return weir.StreamStore(settings, database, "test")


@pytest.fixture
def started() -> Iterator[list[Child]]:
    """Other processes, none of which outlives the test."""
    with children() as some_children:
        yield some_children


def stream(store: weir.StreamStore) -> str:
    """A stream with an event, so that the schema is known and the warehouse is noted."""
    name = unique("s/events")
    store.create_stream(name, "k", segments=3)
    store.append(name, [{"k": "first", "n": -1}])
    return name


def append(store: weir.StreamStore, name: str) -> Committed:
    return store.append(name, ROWS, writer_id="w", batch_id="b")


def appending(settings: Settings, name: str) -> Operation:
    return lambda database: append(weir.StreamStore(settings, database, "killed"), name)


def elsewhere(settings: Settings, name: str) -> Child:
    """A process that appends, and says what went wrong."""

    def work() -> str:
        appending(settings, name)(Database.of(settings))
        return "appended"

    return Child(work)


def check_once(store: weir.StreamStore, name: str) -> None:
    """Each row is in the stream once, in its order, and no file of another attempt is left."""
    found = store.read(name, order="stream").to_pylist()
    assert sorted(row["n"] for row in found) == list(range(-1, len(ROWS)))
    for key in {row["k"] for row in found}:
        numbers = [row["n"] for row in found if row["k"] == key]
        assert numbers == sorted(numbers)
    sweep(store.database, store.settings.warehouse, 0.0)
    warehouse = Path(store.settings.warehouse)
    written = {str(path.relative_to(warehouse)) for path in warehouse.rglob("*.parquet")}
    assert written == {path for (path,) in execute(store.settings.database, FILES)}


@pytest.mark.random
def test_killed_anywhere_and_tried_again_it_is_there_once(
    store: weir.StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    """At every statement and every change of a file."""
    moments = moments_of(test_database.dsn, appending(settings, stream(store)), settings.state)
    for number, moment in some(enumerate(moments), "appends of pyarrow", least=4):
        name = stream(store)
        kill_at(test_database.dsn, appending(settings, name), settings.state, number)
        visible = len(store.read(name)) - 1
        assert visible in (0, len(ROWS)), f"half of it, killed {moment}"
        assert append(store, name).repeated == bool(visible), f"killed {moment}"
        check_once(store, name)
    assert len(moments) > 10, moments


def test_killed_while_postgres_commits_it_is_not_repeated(
    store: weir.StreamStore,
    settings: Settings,
    test_database: TestDatabase,
    started: list[Child],
) -> None:
    name = stream(store)
    # The server has been told to commit, and does so; nobody is left to hear of it.
    with ThreadPoolExecutor(1) as pool, held_commits(test_database) as commits:
        started.append(elsewhere(settings, name))
        [server] = wait_for("the append to commit", commits.waiting)
        started[0].signal(signal.SIGKILL)
        retry = pool.submit(append, store, name)
        wait_for("the retry to wait for it", lambda: blocked_by(test_database.dsn, server))
        commits.let_go()
        assert retry.result().repeated
    check_once(store, name)
