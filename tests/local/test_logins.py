"""The logins: who gets in where, with nothing but the two files of the state folder."""

from collections.abc import Iterator, Sequence

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


LARGE_OBJECTS = ("SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'kept')", "SELECT lo_creat(-1)")
LOCKS = [
    f"SELECT {name}({number})"
    for name in ("pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_xact_lock_shared")
    for number in ("1", "1, 1", "7305808869231650151")
]
CHANGES = (
    "SET ROLE weir_jobs",
    "CREATE TABLE public.mine (n int)",
    "CREATE TEMPORARY TABLE mine (n int)",
    "CREATE SCHEMA mine",
    "SELECT weir_internal.make_staging('mine', ARRAY['n'], ARRAY[23::oid], ARRAY[-1])",
)


@pytest.mark.parametrize(
    ("login", "refused"),
    [("weir_app", LARGE_OBJECTS), ("weir_view", [*LARGE_OBJECTS, *LOCKS, *CHANGES])],
)
def test_no_login_keeps_locks_or_makes_what_it_is_not_for(
    server: EmbeddedPostgres, login: str, refused: Sequence[str]
) -> None:
    for statement in refused:
        connection = psycopg2.connect(server.dsn("weir", login))
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            connection.cursor().execute(statement)
        connection.close()


def test_a_migration_waits_for_another_one_no_longer_than_its_patience(
    server: EmbeddedPostgres,
) -> None:
    connection = psycopg2.connect(server.dsn("weir", "weir_owner"))
    connection.cursor().execute(f"SELECT pg_advisory_lock({migrate._LOCK})")
    with raises("lock_held another migration"):
        migrate.upgrade(server.dsn("weir", "weir_owner"), patience=1)
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
