"""The logins: who gets in where, with nothing but the two files of the state folder."""

from collections.abc import Iterator

import psycopg2
import pytest
import sqlalchemy

from tests.raises import raises
from tests.world.servers import weir_server
from weir.database import migrate
from weir.database.connection import Database
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.settings import Settings


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with weir_server() as postgres:
        yield postgres


@pytest.mark.parametrize(
    ("given", "login"), [({}, "weir_app"), ({"database": "service=weir_reader"}, "weir_view")]
)
def test_the_services_reach_the_database(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], login: str
) -> None:
    for name, file in (("PGSERVICEFILE", "pg_service.conf"), ("PGPASSFILE", "pgpass")):
        monkeypatch.setenv(name, str(server.state.path / file))
    database = Database.of(Settings(state=server.state.path, **given))  # type: ignore[arg-type]
    whoami = sqlalchemy.text("SELECT current_user, current_database()")
    try:
        found = database.transaction(lambda connection: connection.execute(whoami).one())
    finally:
        database.dispose()
    assert tuple(found) == (login, "weir")


@pytest.mark.parametrize(
    ("database", "user"),
    [
        ("airflow", "weir_app"),
        ("airflow", "weir_view"),
        ("airflow", "weir_owner"),
        ("weir", "airflow"),
        ("postgres", "weir_app"),
        ("template1", "weir_view"),
        ("template1", "airflow"),
    ],
)
def test_a_login_gets_into_its_own_database_only(
    server: EmbeddedPostgres, database: str, user: str
) -> None:
    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        psycopg2.connect(server.dsn(database, user))


def test_the_views_login_is_no_jobs_login(server: EmbeddedPostgres) -> None:
    connection = psycopg2.connect(server.dsn("weir", "weir_view"))
    try:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            connection.cursor().execute("SET ROLE weir_jobs")
    finally:
        connection.close()


@pytest.mark.parametrize("statement", ["lo_create(0)", "lo_from_bytea(0, 'kept')", "lo_creat(-1)"])
@pytest.mark.parametrize("login", ["weir_view", "weir_app"])
def test_nobody_stores_large_objects(server: EmbeddedPostgres, login: str, statement: str) -> None:
    connection = psycopg2.connect(server.dsn("weir", login))
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        connection.cursor().execute(f"SELECT {statement}")
    connection.close()


def test_whoever_looks_leaves_connections_to_jobs(server: EmbeddedPostgres) -> None:
    held = [psycopg2.connect(server.dsn("weir", "weir_view")) for _ in range(20)]
    try:
        with pytest.raises(psycopg2.OperationalError, match="too many connections for role"):
            psycopg2.connect(server.dsn("weir", "weir_view"))
        psycopg2.connect(server.dsn("weir", "weir_app")).close()
    finally:
        for one in held:
            one.close()


@pytest.mark.parametrize("name", ["statement_timeout", "idle_in_transaction_session_timeout"])
def test_whoever_looks_holds_nothing_for_ever(server: EmbeddedPostgres, name: str) -> None:
    connection = psycopg2.connect(server.dsn("weir", "weir_view"))
    cursor = connection.cursor()
    cursor.execute(f"SHOW {name}")
    assert cursor.fetchone() == ("10min",)
    connection.close()


def test_whoever_looks_holds_no_advisory_lock(server: EmbeddedPostgres) -> None:
    connection = psycopg2.connect(server.dsn("weir", "weir_view"))
    connection.autocommit = True
    for name in ("pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_xact_lock_shared"):
        for number in ("1", "1, 1", "7305808869231650151"):
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                connection.cursor().execute(f"SELECT {name}({number})")
    connection.close()


def test_a_migration_waits_for_another_one_no_longer_than_its_patience(
    server: EmbeddedPostgres,
) -> None:
    connection = psycopg2.connect(server.dsn("weir", "weir_owner"))
    connection.cursor().execute(f"SELECT pg_advisory_lock({migrate._LOCK})")
    with raises("database_in_use another migration"):
        migrate.upgrade(server.dsn("weir", "weir_owner"), patience=1)
    connection.close()


def test_the_views_login_changes_and_makes_nothing(server: EmbeddedPostgres) -> None:
    for statement in (
        "CREATE TABLE public.mine (n int)",
        "CREATE TEMPORARY TABLE mine (n int)",
        "CREATE SCHEMA mine",
        "SELECT weir_internal.make_staging('mine', ARRAY['n'], ARRAY[23::oid], ARRAY[-1])",
    ):
        connection = psycopg2.connect(server.dsn("weir", "weir_view"))
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            connection.cursor().execute(statement)
        connection.close()


def test_a_wrong_password_is_refused(server: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(server.dsn("weir", "weir_app"), password="guessed")


def test_it_may_be_repeated(server: EmbeddedPostgres) -> None:
    logins.make_owners(server)
    logins.make_users(server)
    psycopg2.connect(server.dsn("weir", "weir_app")).close()
    psycopg2.connect(server.dsn("airflow", "airflow")).close()


def test_a_field_of_the_password_file_is_escaped() -> None:
    assert logins._escaped(r"a:b\c") == r"a\:b\\c"
