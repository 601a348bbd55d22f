"""A database in which much has happened, for all tests that plant faults into it and take them out
again."""

from collections.abc import Iterator

import pytest

from tests.annex.audit.world import World, lived
from tests.conftest import TestDatabase
from tests.world.streams import Lane, database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="package")
def world(postgres_server: EmbeddedPostgres) -> Iterator[World]:
    with (
        database_for_many(postgres_server, "audit"),
        _owner(postgres_server.dsn("audit", "weir_owner")) as owner,
    ):
        yield lived(owner)


@pytest.fixture
def database(test_database: TestDatabase) -> Iterator[Database]:
    """Yield the database as its owner sees it: jobs may not change what these tests make wrong."""
    with _owner(test_database.owner_dsn) as owner:
        yield owner


def _owner(dsn: str) -> Database:
    return Database(dsn, patience=60.0, connect_patience=60.0)


@pytest.fixture
def alone(database: Database) -> Lane:
    """Return a stream in a database of its own."""
    return Lane.made(database, retention="consumed")
