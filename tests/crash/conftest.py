"""An installation that this process and others work on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.jobs import write_config
from tests.spark.installation import Installation
from tests.world.servers import weir_server
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.settings import Settings


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """Yield a server that only the tests of a file use, stop and kill."""
    with weir_server(keeps=True) as postgres:
        yield postgres


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the one warehouse of that server's database."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings) -> Installation:
    """Return an empty installation whose leases are short."""
    return Installation(spark, database, replace(settings, reader_lease=3.0))


@pytest.fixture
def config(weir: Installation, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the weir.toml that jobs of the installation load, here and in other processes, and
    return its path."""
    path = write_config(weir.settings)
    monkeypatch.setenv("WEIR_CONFIG", str(path))
    return path
