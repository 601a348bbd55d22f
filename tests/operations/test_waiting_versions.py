"""Whose transaction keeps commits from being versions is named, of whatever database it is."""

import psycopg2
import pytest

from tests.crash.jobs import wait_for
from tests.world.streams import Lane, rows, run
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.operations.examination import troubles

WAITING = "SELECT * FROM weir.waiting_versions"
METRIC = "SELECT value FROM weir.metrics WHERE metric = 'weir_versions_waiting_seconds'"


@pytest.mark.parametrize("own", [True, False], ids=["of Weir's database", "of another database"])
def test_the_transaction_that_commits_wait_for_to_be_versions_is_named(
    database: Database, postgres_server: EmbeddedPostgres, own: bool
) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 1})
    # The server's own transactions, such as an autovacuum's, count for a moment, too.
    wait_for("the others", lambda: rows(database, WAITING) == [])
    name = str(rows(database, "SELECT current_database()")[0][0]) if own else "postgres"
    other = psycopg2.connect(postgres_server.dsn(name, "postgres"))
    try:
        cursor = other.cursor()
        cursor.execute("SELECT pg_current_xact_id(), pg_backend_pid()")
        [(_, pid)] = cursor.fetchall()
        for _ in range(2):
            lane.append({"0.0": 1})
        wait_for("it", lambda: [one.pid for one in rows(database, WAITING)] == [pid])
        [found] = rows(database, WAITING)
        assert (found.commits, found.pid, found.database) == (2, pid, name)
        assert (found.login, found.prepared) == ("postgres", None)
        run(database, "UPDATE transaction SET clock = clock - 120 * 1000000")
        [check] = troubles(database)
        assert (check.what, check.ok) == ("old transaction", None)
        assert f"session {pid} of postgres in database {name}" in check.found
        [(seconds,)] = rows(database, METRIC)
        assert seconds > 100
    finally:
        other.close()
    wait_for("the end", lambda: rows(database, WAITING) == [] and rows(database, METRIC) == [(0,)])
    assert list(troubles(database)) == []
