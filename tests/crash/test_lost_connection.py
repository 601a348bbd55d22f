"""The connection is lost at COMMIT: what the server did is looked up, nothing is doubled."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.conftest import TestDatabase
from tests.crash.jobs import slow_commits, wait_for
from tests.crash.proxy import Proxy, failing_network
from tests.spark.installation import Installation
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.settings import Settings

# What becomes of one COMMIT after another, round and round.
FATES = {
    "the answer to every COMMIT is lost at first": ["after", "fine"],
    "every COMMIT is lost on its way at first": ["before", "fine"],
    "now this, now that": ["before", "after", "fine", "after", "fine"],
}


@pytest.fixture(params=list(FATES.values()), ids=list(FATES))
def network(
    test_database: TestDatabase, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Proxy]]:
    """The network that fails."""
    with failing_network(test_database.dsn, request.param) as proxy:
        yield proxy


@pytest.fixture
def weir(
    spark: SparkSession, settings: Settings, network: tuple[str, Proxy]
) -> Iterator[Installation]:
    """An installation whose database lies behind it."""
    database = Database(network[0], patience=30.0, connect_patience=10.0)
    yield Installation(spark, database, settings)
    database.dispose()


@pytest.mark.drawn(1, among="a network that fails")
def test_appends_and_scales_happen_exactly_once_over_a_network_that_loses_commits(
    weir: Installation, network: tuple[str, Proxy]
) -> None:
    stream = weir.create(segments=2)
    for number in range(3):
        committed = weir.append(stream, [(f"key {n % 5}", 100 * number + n) for n in range(30)])
        assert committed.events == 30
        weir.scale(stream, [f"{2 * number}.{number}"], parts=2)
    facts = weir.check(stream, read=False)
    assert sorted(facts["n"]) == [100 * number + n for number in range(3) for n in range(30)]
    assert weir.value("SELECT current_epoch FROM stream") == 3
    assert weir.query("SELECT DISTINCT state FROM transaction") == [("committed",)]
    assert len(network[1].cuts) > 6, "the network did not fail: nothing was tested"


@pytest.mark.drawn(1, among="a network that fails")
def test_batches_are_published_exactly_once_over_a_network_that_loses_commits(
    weir: Installation, network: tuple[str, Proxy]
) -> None:
    stream, copies = weir.create(), weir.create("s/copies")
    group = weir.group(stream)

    def copy(events: DataFrame) -> DataFrame:
        return events.select("k", "n")

    for number in range(2):
        weir.append(stream, [(f"key {n % 5}", 100 * number + n) for n in range(30)])
        report = weir.consumer(group, copy, "stream:s/copies", "parquet:copies").run()
        assert report["events"] == 30
    facts = weir.check(copies, read=False)
    assert sorted(facts["n"]) == [100 * number + n for number in range(2) for n in range(30)]
    folders = [row.path for row in weir.query("SELECT path FROM parquet_outputs")]
    assert len(folders) == 2
    read = weir.spark.read.parquet(*folders)
    assert sorted(row.n for row in read.collect()) == sorted(facts["n"])
    assert weir.value("SELECT unread_events FROM lag") == 0
    assert len(network[1].cuts) > 6, "the network did not fail: nothing was tested"


def test_append_whose_session_is_ended_in_the_middle_of_its_commit_commits_again(
    spark: SparkSession, settings: Settings, database: Database, test_database: TestDatabase
) -> None:
    weir = Installation(spark, database, settings)
    stream = weir.create()
    with slow_commits(test_database, 1.0) as at_commit, ThreadPoolExecutor(1) as pool:
        append = pool.submit(weir.append, stream, [("a", 1), ("b", 2)])
        (backend,) = wait_for("the commit", at_commit)
        connection = psycopg2.connect(test_database.dsn)
        connection.cursor().execute("SELECT pg_terminate_backend(%s)", (backend,))
        connection.close()
        committed = append.result(60)
    assert (committed.events, committed.repeated) == (2, False), "the first was rolled back"
    assert sorted(weir.check(stream_name("s/events"))["n"]) == [1, 2]


def test_an_append_whose_answer_is_lost_is_not_called_repeated(
    test_database: TestDatabase, settings: Settings
) -> None:
    def rows(n: int) -> list[dict[str, object]]:
        return [{"k": "a", "n": n}]

    direct = test_database.open()
    store = StreamStore(settings, direct, "direct")
    store.create_stream("s/answers", "k")
    store.append("s/answers", rows(0))  # makes the schema, so that one statement is a commit
    fates = ["after", "before", "fine"]
    with failing_network(test_database.dsn, fates, at=b"commit_append") as (dsn, proxy):
        database = Database(dsn, patience=30.0, connect_patience=10.0)
        behind = StreamStore(settings, database, "behind a network that fails")
        for n in range(1, 4):
            identity = {"writer_id": "w", "batch_id": str(n)}
            assert not behind.append("s/answers", rows(n), **identity).repeated
            assert behind.append("s/answers", rows(n), **identity).repeated
        assert proxy.cuts.count("after") > 1
        database.dispose()
    assert store.read("s/answers")["n"].to_pylist() == [0, 1, 2, 3]
    direct.dispose()
