"""An installation for each test, on the Spark session that all share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.crash.jobs import write_config
from tests.spark.installation import Installation
from tests.warehouse.object_store import ObjectStore, object_store
from weir.database.connection import Database
from weir.model.names import StreamName
from weir.settings import Settings
from weir.spark.reads.source import register


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings) -> Installation:
    """Return an empty installation."""
    return Installation(spark, database, settings)


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Return a stream of ninety events in three segments, and create one for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=5)
    weir.put(stream, [(f"key {n % 11}", n) for n in range(90)])
    return stream


@pytest.fixture
def config(weir: Installation) -> str:
    """Register the format `weir`, and return where Spark's workers find the settings."""
    register(weir.spark)
    return str(write_config(weir.settings))


@pytest.fixture
def configured(weir: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs and jobs of this process find the settings."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(weir.settings)))


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Yield an empty object store, with the variables of this process that lead to it."""
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        yield store
