"""A database for all tests that only look at streams of their own."""

from collections.abc import Iterator

import psycopg2
import pytest

from tests.controller.support import Lane
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.storage import Database


@pytest.fixture(scope="package")
def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """A migrated database, as a job sees it, with the streams of many tests."""
    connection = psycopg2.connect(postgres_server.dsn("postgres", "postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE controller TEMPLATE weir OWNER weir_owner")
        cursor.execute("GRANT CONNECT ON DATABASE controller TO weir_app, weir_view")
    connection.close()
    opened = Database(
        postgres_server.dsn("controller", "weir_app"), patience=60.0, connect_patience=10.0
    )
    yield opened
    opened.dispose()


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """A new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database)
