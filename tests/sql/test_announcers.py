"""Each triggerer's login speaks for the Airflows that it watches for, within limits."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.sql.teams import Opened
from tests.world.streams import rows
from weir.controller.announcements import announced, to_announce, watch
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.logins import scram_verifier

_LOGINS = ("airflow_one", "airflow_two")


@pytest.fixture
def triggerer(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> Iterator[Callable[[str], Database]]:
    """Yield `triggerer(login)`, the database as a login of the role weir_watcher asks it."""
    with psycopg2.connect(postgres_server.dsn("postgres", "postgres")) as connection:
        cursor = connection.cursor()
        for login in _LOGINS:
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [login])
            if not cursor.rowcount:
                verifier = scram_verifier(postgres_server.state.secret(login))
                cursor.execute(f"CREATE ROLE {login} LOGIN PASSWORD %s", [verifier])
                cursor.execute(f"GRANT weir_watcher TO {login}")
            cursor.execute(f"GRANT CONNECT ON DATABASE {test_database.name} TO {login}")
    connection.close()
    opened: list[Database] = []

    def open_as(login: str) -> Database:
        password = postgres_server.state.secret(login)
        dsn = f"{postgres_server.dsn(test_database.name, login)} password={password}"
        opened.append(Database(dsn, patience=60.0, connect_patience=60.0))
        return opened[-1]

    yield open_as
    for one in opened:
        one.dispose()


def _events(*streams: str) -> list[tuple[str, str]]:
    return [("events", one) for one in streams]


def test_no_login_watches_hears_or_answers_for_the_airflow_of_another(
    triggerer: Callable[[str], Database], opened: Opened
) -> None:
    one, two, jobs = triggerer("airflow_one"), triggerer("airflow_two"), opened("weir_app")
    jobs.create_stream("a/b", "n")
    watch(one, "mine", _events("a/b"))
    jobs.append("a/b", [{"n": 1}])
    acts: list[Callable[[], Any]] = [
        lambda: watch(two, "mine", _events("a/b")),
        lambda: to_announce(two, "mine", []),
        lambda: announced(two, "mine", [("a/b", 1)]),
    ]
    for act in acts:
        with raises("right_missing login airflow_two 'mine' airflow_one"):
            act()
    watch(two, "theirs", _events("a/b"))
    [told] = to_announce(one, "mine", [])
    assert (told.stream, told.transactions) == ("a/b", [1])
    announced(one, "mine", [("a/b", 1)])
    assert to_announce(one, "mine", []) == []
    jobs.append("a/b", [{"n": 2}])
    assert [row.transactions for row in to_announce(two, "theirs", [])] == [[2]]


def test_what_jobs_watch_is_taken_over_and_so_is_what_a_login_that_is_gone_watched(
    triggerer: Callable[[str], Database], opened: Opened
) -> None:
    one, two, jobs = triggerer("airflow_one"), triggerer("airflow_two"), opened("weir_app").database
    watch(jobs, "new", _events("a/b"))
    watch(one, "new", _events("a/b"))
    watch(jobs, "new", _events("a/b"))
    assert rows(jobs, "SELECT DISTINCT login FROM watch") == [("airflow_one",)]
    with raises("right_missing announce"):
        watch(two, "new", _events("a/b"))
    assert to_announce(jobs, "new", []) == [], "jobs speak for each"
    jobs.transaction(lambda c: c.exec_driver_sql("UPDATE watch SET login = 'gone_since'"))
    watch(two, "new", _events("a/b"))


def test_a_login_watches_for_eight_airflows_and_for_names_that_can_be(
    triggerer: Callable[[str], Database], opened: Opened
) -> None:
    one, two, jobs = triggerer("airflow_one"), triggerer("airflow_two"), opened("weir_app").database
    for n in range(8):
        watch(one, f"airflow-{n}", _events("a/b"))
    watch(one, "airflow-3", _events("a/b", "a/c"))
    with raises("argument_invalid airflow_one 8 Airflows nobody"):
        watch(one, "airflow-8", _events("a/b"))
    watch(two, "airflow-8", _events("a/b"))
    for airflow, stream in (("", "a/b"), ("a" * 251, "a/b"), ("airflow-8", "a/" + "b" * 250)):
        with raises("argument_invalid airflow_two 250 bytes nobody"):
            watch(two, airflow, _events(stream))
    for n in range(10):
        watch(jobs, f"more-{n}", _events("a/b"))


def test_a_login_watches_a_hundred_thousand_streams(
    triggerer: Callable[[str], Database], opened: Opened
) -> None:
    one = triggerer("airflow_one")
    many = [f"a/s{n}" for n in range(100_000)]
    watch(one, "mine", _events(*many))
    watch(one, "mine", _events(*many))
    with raises("argument_invalid airflow_one 100,000 streams nobody"):
        watch(one, "mine", _events("a/more"))


def test_a_team_queues_nothing_by_sql_for_streams_that_it_does_not_see(opened: Opened) -> None:
    shop, bank, jobs = opened("shop_app"), opened("bank_app").database, opened("weir_app").database
    shop.create_stream("secret/orders", "n", owner="team_shop")
    watch(jobs, "airflow", _events("secret/orders"))
    [row] = rows(jobs, "SELECT s::text AS whole FROM stream s")
    queue = "SELECT queue_announcements(CAST(:s AS weir_internal.stream), 7, true, NULL, false)"
    rows(bank, queue, s=row.whole)
    assert to_announce(jobs, "airflow", []) == []
    with raises("database_failed permission denied"):
        rows(bank, "INSERT INTO announcement VALUES ('airflow', 'events', 'a/b', 1, 1) RETURNING 1")
    shop.append("secret/orders", [{"n": 1}])
    assert len(to_announce(jobs, "airflow", [])) == 1


def test_a_login_that_watches_has_limits(postgres_server: EmbeddedPostgres) -> None:
    with psycopg2.connect(postgres_server.dsn("weir", "postgres")) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT rolname, rolconnlimit, array_to_string(rolconfig, ' ') FROM pg_roles "
            "WHERE rolname IN ('weir_view', 'weir_watch') ORDER BY rolname"
        )
        for _, connections, settings in cursor.fetchall():
            assert connections == 20
            assert "statement_timeout=10min" in settings
            assert "idle_in_transaction_session_timeout=10min" in settings
        assert cursor.rowcount == 2
    connection.close()
