"""A database for all tests that only look at streams of their own."""

import pytest

from tests.world.streams import Lane, shared_by
from weir.database.connection import Database

shared_database = shared_by("controller")


@pytest.fixture
def lane(shared_database: Database) -> Lane:
    """Return a new stream of two segments, 0.0 and 1.0."""
    return Lane.made(shared_database, retention="consumed")
