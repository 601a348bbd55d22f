"""Each refusal of Postgres that people meet ends in a sentence with what to do (a real server)."""

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.small_disk import mounted, resize
from weir.database import migrate
from weir.database.connection import Database
from weir.database.refusals import login_advice
from weir.errors import DatabaseFailed, Unavailable
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.operations.runner import failure_of
from weir.terminal.__main__ import main

# What is run, what the sentence says of it and what to do, and whether to try again as it is.
REFUSED = [
    ("SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(5)", "time", "raise", True),
    ("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)", "user request", "again", True),
    ("SELECT pg_advisory_xact_lock(i) FROM generate_series(1, 2000000) i",
     "out of shared memory", "max_locks_per_transaction", True),
    ("SET LOCAL work_mem = '64kB'; SET LOCAL temp_file_limit = '64kB';"
     "SELECT count(*) FROM (SELECT i FROM generate_series(1, 50000) i ORDER BY -i) s",
     "temp_file_limit", "raise the limit", True),
    ("CREATE TABLE public.bare (n int); CREATE PUBLICATION p FOR TABLE public.bare;"
     "INSERT INTO public.bare VALUES (1); UPDATE public.bare SET n = 2",
     "replica identity", "publication", True),
    *((f"DO $$ BEGIN RAISE 'broken' USING ERRCODE = '{state}'; END $$", "broken", todo, again)
      for state, todo, again in [
        ("58030", "disk", True), ("58P01", "restore", False), ("XX000", "log", True),
        ("XX001", "restore", False), ("XX002", "REINDEX", False), ("53000", "more", True)]),
]  # fmt: skip


@pytest.fixture
def superuser(postgres_server: EmbeddedPostgres, test_database: TestDatabase) -> Iterator[Database]:
    dsn = postgres_server.dsn(test_database.name, "postgres")
    with Database(dsn, patience=0.0, connect_patience=0.0) as database:
        yield database


def run(statement: str, connection: Connection) -> object:
    return connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


@pytest.mark.parametrize(("statement", "says", "todo", "again"), REFUSED)
def test_what_a_server_refuses_ends_in_a_sentence(
    superuser: Database, statement: str, says: str, todo: str, again: bool
) -> None:
    with pytest.raises(DatabaseFailed, match=says) as failed:
        superuser.transaction(partial(run, statement))
    assert failed.value.code == "database_failed"
    assert todo in failed.value.sentence
    assert failed.value.retryable == again
    assert "psycopg2" not in str(failed.value)
    assert failure_of(failed.value) == (str(failed.value), again)


def test_a_full_disk_of_the_server_is_said_and_the_same_work_succeeds_when_there_is_space(
    superuser: Database, test_database: TestDatabase
) -> None:
    def insert(connection: Connection) -> None:
        run("INSERT INTO public.wide SELECT repeat(i::text, 200) FROM generate_series(1, 2000) i",
            connection)  # fmt: skip

    name = f"{test_database.name}_small"
    with tempfile.TemporaryDirectory() as above, superuser.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        Path(above).chmod(0o755)
        server = Path(connection.exec_driver_sql("SHOW data_directory").scalar_one()).stat()
        with mounted(Path(above, "disk")) as disk:
            os.chown(disk, server.st_uid, server.st_gid)
            connection.exec_driver_sql(f"CREATE TABLESPACE {name} LOCATION '{disk}'")
            try:
                connection.exec_driver_sql(f"CREATE TABLE public.wide (t text) TABLESPACE {name}")
                with raises("database_failed disk") as full:
                    superuser.transaction(insert)
                assert full.value.retryable
                assert "free space on the disk of Postgres" in full.value.sentence
                resize(disk, "8m")
                superuser.transaction(insert)
            finally:
                connection.exec_driver_sql("DROP TABLE IF EXISTS public.wide")
                connection.exec_driver_sql(f"DROP TABLESPACE {name}")


def test_a_transaction_that_may_not_last_is_told_from_a_server_that_is_away(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    login = f"ROLE weir_app IN DATABASE {test_database.name}"
    postgres_server.psql(f"ALTER {login} SET transaction_timeout = '15ms'")
    with (
        Database(test_database.dsn, patience=0.0, connect_patience=0.0) as database,
        raises("transaction_too_short 15ms raise transaction_timeout"),
    ):
        database.transaction(partial(run, "SELECT pg_sleep(5)"))


def reading(database: Database) -> None:
    database.transaction(lambda c: c.execute(text("SELECT count(*) FROM stream")))


def told(database: Database, statement: str, wanted: str) -> str:
    """What a person is told whose statement is refused."""
    with database, raises(wanted) as refused:
        database.transaction(partial(run, statement))
    return str(refused.value)


def test_a_database_without_weir_is_named_at_every_door(
    postgres_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    dsn = postgres_server.dsn("postgres", "postgres")
    with Database(dsn, patience=0.0, connect_patience=0.0) as database:
        for statement in (
            "SELECT 1 FROM stream", "SELECT 1 FROM weir_internal.stream", "SELECT 1 FROM weir.lag",
            "SELECT weir.why_scale('a/b')", "CREATE TABLE weir_internal.t (n int)",
        ):  # fmt: skip
            with raises("database_failed dbname=postgres no tables of Weir") as without:
                database.transaction(partial(run, statement))
            assert "python -m weir.database.migrate" in str(without.value)
            assert not without.value.retryable
    (tmp_path / "weir.toml").write_text(f'database = "{dsn}"\n')
    monkeypatch.setenv("WEIR_CONFIG", str(tmp_path / "weir.toml"))
    for words in (["streams"], ["lag"], ["read", "a/b"], ["tail", "a/b"], ["retention"], ["disk"],
                  ["create", "a/b", "--key", "k"], ["why", "a/b"], ["lineage", "a/b"]):  # fmt: skip
        assert main(words) == 2, words
        said = capsys.readouterr().err
        assert "has no tables of Weir" in said, words
        assert "[database_failed]" in said, words


def test_a_login_without_weirs_rights_is_told_which_to_get(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    viewer = Database(dsn, patience=0.0, connect_patience=0.0)
    changing = "UPDATE stream SET scope = scope"
    said = told(viewer, changing, "database_failed login weir_view")
    assert "GRANT weir_jobs TO weir_view" in said
    made = "CREATE TABLE weir_staging.mine (n int)"
    assert "grant that right" in told(test_database.open(), made, "database_failed weir_app")


def test_a_database_of_another_version_is_named_and_a_mistake_in_this_one_is_a_mistake(
    superuser: Database, test_database: TestDatabase
) -> None:
    with pytest.raises(DBAPIError) as mistake:
        superuser.transaction(partial(run, "SELECT nothing FROM weir_internal.stream"))
    assert failure_of(mistake.value)[0].startswith("Postgres refused a statement (column")
    superuser.transaction(
        partial(run, "UPDATE weir_internal.alembic_version SET version_num = 'z'")
    )
    asked = "SELECT nothing FROM stream"
    said = told(test_database.open(), asked, "database_failed layout z")
    assert "program of its version" in said


def test_a_database_with_too_many_sessions_is_no_wrong_address(
    superuser: Database, test_database: TestDatabase
) -> None:
    superuser.transaction(partial(run, f"ALTER DATABASE {test_database.name} CONNECTION LIMIT 0"))
    with raises("database_unavailable too many connections raise the limit") as full:
        reading(Database(test_database.dsn, patience=0.0, connect_patience=0.0))
    assert "is right" not in str(full.value)


def test_a_server_that_may_only_be_read_is_told_after_the_patience(superuser: Database) -> None:
    def writing(connection: Connection) -> None:
        run("SET TRANSACTION READ ONLY", connection)
        run("INSERT INTO weir_internal.request VALUES ('r', 'o', 'o', '', '{}')", connection)

    with raises("database_unavailable read-only may be written took over"):
        superuser.transaction(writing)


def test_a_session_that_an_administrator_ends_is_told_after_the_patience(
    superuser: Database,
) -> None:
    with pytest.raises(Unavailable) as ended:
        superuser.transaction(partial(run, "SELECT pg_terminate_backend(pg_backend_pid())"))
    assert ended.value.code == "database_unavailable"


@pytest.mark.parametrize(
    ("change", "says", "todo"),
    [
        (" password=wrong passfile=/nowhere", "password authentication failed", "its password"),
        (" passfile=/nowhere", "no password supplied", "its password"),
        (" user=nobody password=x", "password authentication failed", "its password"),
        (" dbname=nowhere", "does not exist", "migrate it"),
        (" user=weir_view dbname=airflow", "permission denied", "GRANT CONNECT"),
        (" service=nowhere", 'service "nowhere" not found.*; .* WEIR_CONFIG', "the service"),
        (" service=weir", "service file .* not found", "the service"),
    ],
)
def test_a_login_that_is_refused_is_told_at_once_what_to_correct(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, change: str, says: str,
    todo: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("PGSERVICEFILE", raising=False)  # another test's installation may name one
    if "file" in says:
        monkeypatch.setenv("PGSERVICEFILE", "/nowhere/none.conf")
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=says) as refused:
        reading(Database(test_database.dsn + change, patience=300.0, connect_patience=300.0))
    assert todo in refused.value.sentence
    assert time.monotonic() - begun < 100.0


def test_a_migration_says_what_to_do_in_the_words_of_its_own_setting(
    postgres_server: EmbeddedPostgres,
) -> None:
    owner = postgres_server.dsn("nowhere", "weir_owner")
    with raises("database_unavailable migrated nowhere WEIR_DATABASE_OWNER"):
        migrate.upgrade(owner)
    with raises("database_unavailable migrated password WEIR_DATABASE_OWNER"):
        migrate.upgrade(f"{owner} password=wrong")


def test_every_advice_about_a_login_names_a_setting_or_something_to_do() -> None:
    assert login_advice("Connection refused")[1]
    for reason in ("FATAL: sorry, too many clients already", "the database system is starting up"):
        assert login_advice(reason)[1], "it may pass"
