"""A database for all tests that only look at streams of their own; and one that jobs find."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash.jobs import write_config
from tests.world.streams import Lane, database_for_many
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.settings import Settings


@pytest.fixture(scope="package")
def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """Yield a migrated database, as a job sees it, with the streams of many tests."""
    with database_for_many(postgres_server, "retention") as database:
        yield database


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """Return a new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database, retention="consumed")


@pytest.fixture
def alone(database: Database) -> Lane:
    """Return a stream in a database of its own."""
    return Lane.made(database, retention="consumed")


@pytest.fixture
def warehouse(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the warehouse of an installation that jobs find, where garbage and expired appends are
    deleted at once."""
    given = replace(settings, transaction_lease=0.01)
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(given, verify_bytes=0)))
    check_warehouse_ownership(database, settings.warehouse)
    return Path(settings.warehouse)
