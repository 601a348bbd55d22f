"""The blocks of a page that need Spark, in order with its others, as a reader would type them."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import weir as library
from tests.conftest import TestDatabase
from tests.crash.jobs import execute, write_config
from tests.documents.blocks import PAGES, blocks
from tests.documents.reader import Reader
from tests.documents.world import TABLE, bring, flights, settle
from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as weir
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import stream_name
from weir.settings import Settings
from weir.spark import Appender
from weir.spark import Reader as GroupReader
from weir.spark.appends.transaction import transaction

PLAYED = [page for page in PAGES if any(one.mark == "spark" for one in blocks(page))]


@pytest.mark.release
@pytest.mark.parametrize("page", PLAYED)
def test_a_page_does_what_it_says_with_spark(
    page: str,
    spark: SparkSession,
    weir: Callable[..., Done],
    settings: Settings,
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring(tmp_path)
    execute(test_database.owner_dsn, TABLE)
    monkeypatch.setenv("WEIR_DATABASE_OWNER", test_database.owner_dsn)
    monkeypatch.delitem(sys.modules, "recipes", raising=False)
    (tmp_path / "in" / "orders").mkdir(parents=True)
    regions = pa.table({"customer": ["ann", "bob"], "region": ["north", "south"]})
    pq.write_table(regions, tmp_path / "regions.parquet")
    with library.open(settings=settings, source="test") as store:
        settle(store, page)
        store.create_stream("nyc/delays", "carrier")
        known: dict[str, object] = {
            "spark": spark, "store": store, "Reader": GroupReader, "datetime": datetime,
            "UTC": UTC, "DataFrame": DataFrame, "transaction": transaction,
            "stream_name": stream_name, "appender": Appender(store), "table": pa.table(
                {"carrier": ["AA"], "time_hour": [datetime(2013, 6, 1, tzinfo=UTC)]}),
            "flights": spark.createDataFrame(flights()).select("carrier", "time_hour"),
            "delays": spark.createDataFrame([("AA", 7)], "carrier string, flight int"),
        }  # fmt: skip
        superuser = postgres_server.dsn(test_database.name, "postgres")
        # Spark's workers have the environment in which Spark was started, before this test.
        config = f'format("weir").option("config", "{write_config(settings)}")'
        reader = Reader(tmp_path, test_database, weir, superuser, known)
        reader.places['format("weir")'] = config
        for block in blocks(page):
            if block.runs:
                reader.play(block)
        for query in spark.streams.active:
            query.stop()
