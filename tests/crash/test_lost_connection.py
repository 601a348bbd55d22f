"""The connection is lost at COMMIT: what the server did is looked up, nothing is doubled."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import weir
from tests.committed_folders import committed_numbers
from tests.conftest import TestDatabase
from tests.crash.jobs import execute, held_commits, wait_for
from tests.crash.proxy import Proxy, failing_network
from tests.released import only
from weir.database.connection import Database
from weir.settings import Settings

# What becomes of one COMMIT after another, round and round.
FATES = {
    "the answer to every COMMIT is lost at first": ["after", "fine"],
    "every COMMIT is lost on its way at first": ["before", "fine"],
    "now this, now that": (MIXED := ["before", "after", "fine", "after", "fine"]),
}


@pytest.fixture(params=only(MIXED, of=FATES.values()), ids=list(FATES))
def network(
    test_database: TestDatabase, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Proxy]]:
    """The network that fails."""
    with failing_network(test_database.dsn, request.param) as proxy:
        yield proxy


@pytest.fixture
def store(settings: Settings, network: tuple[str, Proxy]) -> Iterator[weir.StreamStore]:
    """An installation whose database lies behind it."""
    database = Database(network[0], patience=60.0, connect_patience=10.0)
    yield weir.StreamStore(settings, database, "behind a network that fails")
    database.dispose()


def rows(first: int) -> list[dict[str, object]]:
    return [{"k": f"key {n % 5}", "n": n} for n in range(first, first + 30)]


def test_appends_and_scales_happen_exactly_once_over_a_network_that_loses_commits(
    store: weir.StreamStore, network: tuple[str, Proxy], test_database: TestDatabase
) -> None:
    store.create_stream("s/events", "k", segments=2)
    for number in range(3):
        assert store.append("s/events", rows(100 * number)).events == 30
        store.scale_stream("s/events", [f"{2 * number}.{number}"], parts=2)
    found = store.read("s/events", order="stream")["n"].to_pylist()
    assert sorted(found) == [100 * number + n for number in range(3) for n in range(30)]
    epochs = execute(test_database.dsn, "SELECT current_epoch FROM stream")
    assert epochs == [(3,)]
    states = execute(test_database.dsn, "SELECT DISTINCT state FROM transaction")
    assert states == [("committed",)]
    assert len(network[1].cuts) > 6, "the network did not fail: nothing was tested"


def test_batches_are_published_exactly_once_over_a_network_that_loses_commits(
    store: weir.StreamStore, network: tuple[str, Proxy], test_database: TestDatabase
) -> None:
    for name in ("s/events", "s/copies"):
        store.create_stream(name, "k", segments=4)
    store.create_reader_group("readers", ["s/events"])
    for number in range(2):
        store.append("s/events", rows(100 * number))
        with store.reader("readers") as reader:
            read = 0
            for batch in reader:
                copies = batch.events.select(["k", "n"])
                batch.commit({"stream:s/copies": copies, "parquet:copies": copies})
                read += batch.size
        assert read == 30
    all_of_them = [100 * number + n for number in range(2) for n in range(30)]
    assert sorted(store.read("s/copies")["n"].to_pylist()) == all_of_them
    root = store.settings.output_roots[0]
    assert committed_numbers(store.database, root, "readers", "copies") == all_of_them
    assert execute(test_database.dsn, "SELECT unread_events FROM lag") == [(0,)]
    assert len(network[1].cuts) > 6, "the network did not fail: nothing was tested"


def test_append_whose_session_is_ended_in_the_middle_of_its_commit_commits_again(
    settings: Settings, database: Database, test_database: TestDatabase
) -> None:
    store = weir.StreamStore(settings, database, "test")
    store.create_stream("s/events", "k")
    with ThreadPoolExecutor(1) as pool, held_commits(test_database) as commits:
        append = pool.submit(store.append, "s/events", [{"k": "a", "n": 1}, {"k": "b", "n": 2}])
        [server] = wait_for("the commit", commits.waiting)
        execute(test_database.dsn, f"SELECT pg_terminate_backend({server})")
        wait_for("the next try", lambda: set(commits.waiting()) - {server})
        commits.let_go()
        committed = append.result()
    assert (committed.events, committed.repeated) == (2, False), "the first was rolled back"
    assert sorted(store.read("s/events")["n"].to_pylist()) == [1, 2]


def test_an_append_whose_answer_is_lost_is_not_called_repeated(
    test_database: TestDatabase, settings: Settings
) -> None:
    def row(n: int) -> list[dict[str, object]]:
        return [{"k": "a", "n": n}]

    direct = test_database.open()
    store = weir.StreamStore(settings, direct, "direct")
    store.create_stream("s/answers", "k")
    store.append("s/answers", row(0))  # makes the schema, so that one statement is a commit
    fates = ["after", "before", "fine"]
    with failing_network(test_database.dsn, fates, at=b"commit_append") as (dsn, proxy):
        database = Database(dsn, patience=60.0, connect_patience=10.0)
        behind = weir.StreamStore(settings, database, "behind a network that fails")
        for n in range(1, 4):
            identity = {"writer_id": "w", "batch_id": str(n)}
            assert not behind.append("s/answers", row(n), **identity).repeated
            assert behind.append("s/answers", row(n), **identity).repeated
        assert proxy.cuts.count("after") > 1
        database.dispose()
    assert store.read("s/answers")["n"].to_pylist() == [0, 1, 2, 3]
    direct.dispose()
