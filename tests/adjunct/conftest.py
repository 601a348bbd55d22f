"""A database for all tests that only look at stores of their own."""

from collections.abc import Iterator

import pytest

from tests.world.streams import database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="package")
def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """Yield a migrated database, as a job sees it, with the stores of many tests."""
    with database_for_many(postgres_server, "adjunct") as database:
        yield database
