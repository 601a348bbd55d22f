"""A database in which much has happened, for all tests that plant faults into it and take them out
again."""

from collections.abc import Iterator

import pytest

from tests.audit.world import World, lived
from tests.world.streams import Lane, database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="package")
def world(postgres_server: EmbeddedPostgres) -> Iterator[World]:
    with database_for_many(postgres_server, "audit") as database:
        yield lived(database)


@pytest.fixture
def alone(database: Database) -> Lane:
    """Return a stream in a database of its own."""
    return Lane.made(database, retention="consumed")
