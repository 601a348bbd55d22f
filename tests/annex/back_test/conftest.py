"""The streams of the tests of history."""

from tests.history.conftest import lane as lane
from tests.history.conftest import shared_database as shared_database
