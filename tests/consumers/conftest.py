"""An opened installation whose readers need no JVM, and a stream for them to read."""

from collections.abc import Iterator

import pytest

import weir
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker


@pytest.fixture
def store(database: Database, settings: Settings) -> Iterator[weir.StreamStore]:
    """Return an opened installation with the streams s/in and s/out, and the group g."""
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    with weir.open(settings=settings, source="test") as opened:
        opened.create_stream("s/in", "k", segments=3)
        opened.create_stream("s/out", "k", segments=2)
        opened.create_reader_group("g", ["s/in"])
        yield opened


@pytest.fixture
def results(test_database: TestDatabase) -> str:
    """Return the name of a table for results."""
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (k text, n bigint PRIMARY KEY);
        CREATE TABLE public.last (k varchar(6) PRIMARY KEY, n bigint, j jsonb);
        GRANT SELECT, INSERT, UPDATE, DELETE ON public.results, public.last
            TO weir_jobs, weir_publisher""",
    )
    return "public.results"
