"""A database for all tests that only look at groups and streams of their own."""

from collections.abc import Callable, Iterator

import psycopg2
import pytest

from tests.controller.support import Lane, database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres


@pytest.fixture(scope="package")
def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """A migrated database, as a job sees it, with the groups of many tests."""
    with database_for_many(postgres_server, "reader_groups") as database:
        yield database


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """A new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database)


@pytest.fixture
def as_owner(postgres_server: EmbeddedPostgres, shared_database: Database) -> Callable[..., None]:
    """Runs statements as somebody who has tables."""

    def execute(*statements: str) -> None:
        connection = psycopg2.connect(postgres_server.dsn("reader_groups", "weir_owner"))
        connection.autocommit = True
        for statement in statements:
            connection.cursor().execute(statement)
        connection.close()

    return execute
