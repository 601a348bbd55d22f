"""Random histories of streams, made once for all tests that only ask about them."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.controller.driver import Driver
from tests.controller.support import database_for_many
from tests.sql.history import History, live
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.storage import Database


@pytest.fixture(scope="package")
def histories(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    """A database with the streams of many tests."""
    with database_for_many(postgres_server, "histories") as database:
        yield database


@pytest.fixture(scope="package", params=range(6))
def lived(histories: Database, request: pytest.FixtureRequest) -> tuple[Driver, int]:
    """A stream with a history, and the seed it came from."""
    return live(histories, request.param), request.param


@pytest.fixture
def history(lived: tuple[Driver, int]) -> History:
    """The same with chances of its own, so that tests don't depend on each other."""
    driver, seed = lived
    return History(driver, Random(seed))
