"""What has no identity is committed once, and told as it was done, though the answer is lost."""

from functools import partial

import pytest
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.crash.proxy import failing_network
from tests.world.streams import rows, run
from weir.database.connection import Database
from weir.database.once import commit_once


def take(connection: Connection, seen: list[int]) -> int:
    """Take all that is there, as a periodic run does: a second one finds nothing."""
    taken = connection.execute(text("DELETE FROM garbage")).rowcount
    seen.append(taken)
    return taken


@pytest.mark.parametrize(("fate", "found"), [("before", [3, 3]), ("after", [3])])
def test_what_is_committed_is_told_though_the_answer_was_lost(
    test_database: TestDatabase, database: Database, fate: str, found: list[int]
) -> None:
    for n in range(3):
        run(database, "INSERT INTO garbage (root, path, reason) VALUES ('', :p, 'deleted')", p=n)
    seen: list[int] = []
    with (
        failing_network(test_database.dsn, [fate], once=True) as (dsn, proxy),
        Database(dsn, patience=20.0, connect_patience=20.0) as behind,
    ):
        assert commit_once(behind, partial(take, seen=seen)) == 3
    assert proxy.cuts == [fate]
    assert seen == found
    assert rows(database, "SELECT FROM garbage") == []


def test_what_wrote_nothing_is_done_again(test_database: TestDatabase) -> None:
    seen: list[int] = []

    def look(connection: Connection) -> int:
        seen.append(1)
        return int(connection.execute(text("SELECT 7")).scalar_one())

    with (
        failing_network(test_database.dsn, ["after"], once=True) as (dsn, _),
        Database(dsn, patience=20.0, connect_patience=20.0) as behind,
    ):
        assert commit_once(behind, look) == 7
    assert seen == [1, 1]
