"""Random histories of streams, made once for all tests that only ask about them; and logins."""

from collections.abc import Iterator

import pytest

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.controller.driver import Driver
from tests.sql.history import History, live
from tests.sql.teams import Opened, opened_by_logins
from tests.world.streams import database_for_many
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.settings import Settings


@pytest.fixture(scope="package")
def histories(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """Yield a database with the streams of many tests."""
    with database_for_many(postgres_server, "histories") as database:
        yield database


@pytest.fixture(scope="package", params=range(cases(6)))
def lived(histories: Database, request: pytest.FixtureRequest) -> tuple[Driver, int]:
    """Return a stream with a history, and the number of its case."""
    return live(histories, request.param), request.param


@pytest.fixture
def history(lived: tuple[Driver, int]) -> History:
    """Return the same stream with random numbers of its own: tests don't depend on each other."""
    driver, case = lived
    return History(driver, random_for("history", case))


@pytest.fixture
def opened(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, settings: Settings
) -> Iterator[Opened]:
    """Yield `opened(login)`, which opens the installation with a login of a team or of jobs."""
    with opened_by_logins(postgres_server, test_database, settings) as open_as:
        yield open_as
