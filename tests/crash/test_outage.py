"""Postgres goes away in the middle of an append, and of a batch, for longer than a lease."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.crash.jobs import wait_for
from tests.spark.installation import Installation
from weir.controller.expiry import expire as expire_transactions
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import stream_name
from weir.reader_groups.groups.readers import expire as expire_readers
from weir.settings import Settings

pytestmark = pytest.mark.release

LEASE = 3.0


@pytest.fixture
def weir(
    spark: SparkSession, server: EmbeddedPostgres, warehouse: Path, tmp_path: Path
) -> Iterator[Installation]:
    """An installation on it whose leases are short."""
    settings = Settings(
        state=tmp_path, database=server.dsn(), warehouse=str(warehouse),
        output_roots=(str(tmp_path / "output"),), transaction_lease=LEASE, reader_lease=LEASE,
    )  # fmt: skip
    database = Database(settings.database, patience=60.0, connect_patience=10.0)
    yield Installation(spark, database, settings)
    database.dispose()
    server.start()  # whatever the test did


def come_back(weir: Installation, server: EmbeddedPostgres) -> list[Any]:
    """Start the server, and at once do what upkeep does: end everybody whose lease has run out."""
    server.start()
    upkeep = Database(weir.settings.database, patience=60.0, connect_patience=10.0)
    ended = [*expire_transactions(upkeep, LEASE), *expire_readers(upkeep, LEASE)]
    upkeep.dispose()
    return ended


def rows(spark: SparkSession, count: int) -> DataFrame:
    """Events of seven keys."""
    return spark.range(0, count, 1, 2).select(
        F.concat(F.lit("key "), F.col("id") % 7).alias("k"), F.col("id").alias("n")
    )


def test_append_during_which_postgres_was_away_commits_after_it_is_back(
    weir: Installation, server: EmbeddedPostgres
) -> None:
    stream = weir.create("s/append", segments=3)
    nap = "java_method('java.lang.Thread', 'sleep', 50L)"  # five seconds in all
    frame = rows(weir.spark, 200).where(f"NOT ({nap} <=> 'awake')")
    tasks = weir.spark.sparkContext.statusTracker()
    begun = "SELECT FROM transaction WHERE state = 'open'"
    with ThreadPoolExecutor(1) as pool:
        append = pool.submit(weir.append, stream, frame)
        wait_for("its tasks", lambda: weir.query(begun) and tasks.getActiveStageIds())
        server.stop()
        gone = time.monotonic()
        wait_for("the files", lambda: append.done() or not tasks.getActiveStageIds())
        time.sleep(max(1.0, gone + LEASE + 1 - time.monotonic()))
        assert not append.done(), append.result()  # it wants to commit to a server that is away
        assert come_back(weir, server) == []
        assert append.result(60).events == 200
    facts = weir.check(stream)
    assert sorted(facts["n"]) == list(range(200))
    assert weir.value("SELECT attempt FROM transaction") == 1, "it cost time, not work"


def test_batch_during_which_postgres_crashed_commits_after_it_is_back(
    weir: Installation, server: EmbeddedPostgres
) -> None:
    stream, copies = weir.create("s/batch"), weir.create("s/copies", segments=2)
    weir.append(stream, rows(weir.spark, 100))
    group = weir.group(stream)
    ended: list[Any] = []

    def down_then_up() -> None:
        time.sleep(LEASE + 1)
        ended.extend(come_back(weir, server))

    back = threading.Thread(target=down_then_up)

    def copy(events: DataFrame) -> DataFrame:
        server.kill()
        back.start()
        return events.select("k", "n")

    outputs = ("stream:s/copies", "parquet:copies")
    report = weir.consumer(group, copy, *outputs).run()
    back.join()
    assert ended == [], "nobody's lease was held against them"
    (batch,) = report["batches"]
    assert (batch["attempt"], batch["events"]) == (1, 100)
    assert sorted(weir.check(stream_name("s/copies"))["n"]) == list(range(100))
    assert weir.value("SELECT unread_events FROM lag WHERE reader_group = :g", g=group) == 0
    assert copies == stream_name("s/copies")
    (folder,) = weir.query("SELECT path FROM parquet_outputs")
    assert weir.spark.read.parquet(folder.path).count() == 100
