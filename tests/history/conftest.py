"""A database for all tests that only look at streams of their own."""

from collections.abc import Iterator

import pytest

from tests.world.streams import Lane, database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="package")
def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """Yield a migrated database, as a job sees it, with the streams of many tests."""
    with database_for_many(postgres_server, "history") as database:
        yield database


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """Return a new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database)
