"""A database for all tests that only look at groups and streams of their own."""

import psycopg2
import pytest

from tests.world.groups import Execute, Group
from tests.world.streams import Lane, shared_by, unique
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres

shared_database = shared_by("reader_groups")


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """Return a new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database, retention="consumed")


@pytest.fixture
def as_owner(postgres_server: EmbeddedPostgres, shared_database: Database) -> Execute:
    """Return a function that runs statements as somebody who has tables."""

    def execute(*statements: str) -> None:
        connection = psycopg2.connect(postgres_server.dsn("reader_groups", "weir_owner"))
        connection.autocommit = True
        for statement in statements:
            connection.cursor().execute(statement)
        connection.close()

    return execute


@pytest.fixture
def group(lane: Lane) -> Group:
    """Return a group that reads ten events in each of two segments."""
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    return Group.made(lane)


@pytest.fixture
def table(as_owner: Execute) -> str:
    """Create a table for numbers, which must be unique, and return its name."""
    schema = unique("shop").replace("-", "_")
    as_owner(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.numbers (n bigint PRIMARY KEY, said text, at date DEFAULT 'today')",
        f"GRANT USAGE ON SCHEMA {schema} TO weir_jobs, weir_publisher",
        f"GRANT SELECT, INSERT ON {schema}.numbers TO weir_jobs, weir_publisher",
    )
    return f"{schema}.numbers"
