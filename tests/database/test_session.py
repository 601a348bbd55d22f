"""Statements mean the same whatever a login, a database or a server is set to."""

from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import Connection

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.groups import Group, stage_numbers
from tests.world.streams import Lane, rows
from weir.database import migrate, session
from weir.database.connection import Database
from weir.database.session import lend
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.operations.examination import examine
from weir.retention.capture import capture
from weir.retention.run import retain
from weir.settings import Settings

HOSTILE = {
    "search_path": "public",
    "timezone": "'Asia/Kathmandu'",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "datestyle": "'SQL, DMY'",
    "row_security": "off",
    "gin_fuzzy_search_limit": "1",
}
SHOP = """CREATE SCHEMA shop; CREATE TABLE shop.numbers (n bigint, said text, at date);
    GRANT USAGE ON SCHEMA shop TO weir_publisher, weir_jobs;
    GRANT SELECT, INSERT ON shop.numbers TO weir_publisher, weir_jobs"""
# The ways in which a session is told another encoding than the one that Weir sends.
ENCODINGS = ("environment", "login", "database", "service", "connection string", "its options")
# Texts whose bytes are others in other encodings, or that these don't have.
TEXTS = ("Ä€", "Ã¤", "naïve café", "日本語", "\U0001f600", "\u0080\u009f", "€ ƒ …")


def test_every_setting_that_changes_a_meaning_is_tried() -> None:
    assert HOSTILE.keys() == session.MEANING.keys()


@pytest.mark.parametrize("name", ["standard_conforming_strings", "all"])
def test_a_stream_lives_whatever_a_login_is_set_to(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, name: str
) -> None:
    for one, value in HOSTILE.items():
        if name in (one, "all"):
            postgres_server.psql(
                f"ALTER ROLE weir_app IN DATABASE {test_database.name} SET {one} = {value};"
                f"ALTER ROLE weir_owner IN DATABASE {test_database.name} SET {one} = {value}"
            )
    migrate.upgrade(test_database.owner_dsn)
    database = test_database.open()
    lane = Lane.made(database, retention="consumed", retain_min_age=None)
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch)
    assert [one["events"] for one in capture(database)] == [20]
    retain(database)
    for asked in ("weir.streams", "weir.lag", "weir.why_kept(:s)"):
        assert rows(database, f"SELECT * FROM {asked}", s=str(lane.name)) is not None
    assert [row[0] for row in rows(database, "SELECT unread_events FROM weir.lag")] == [0]
    database.dispose()


@pytest.fixture
def told(
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Database]:
    """Yield the database, opened by a session that is told another encoding in one of the ways."""
    way, encoding = request.param
    dsn = test_database.dsn
    if way == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
    elif way in ("login", "database"):
        what = f"ROLE weir_app IN DATABASE {test_database.name}"
        postgres_server.psql(
            f"ALTER {what if way == 'login' else 'DATABASE ' + test_database.name} "
            f"SET client_encoding = {encoding}"
        )
    elif way == "service":
        parts = psycopg2.extensions.parse_dsn(dsn) | {"client_encoding": encoding}
        file = tmp_path / "pg_service.conf"
        file.write_text("[told]\n" + "".join(f"{n}={v}\n" for n, v in parts.items()))
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        dsn = "service=told"
    elif way == "connection string":
        dsn += f" client_encoding={encoding}"
    else:
        dsn += f" options='-c client_encoding={encoding}'"
    with Database(dsn, patience=5.0, connect_patience=5.0) as database:
        yield database


@pytest.mark.parametrize(
    "told",
    [(w, "LATIN1") for w in ENCODINGS] + [("environment", e) for e in ("WIN1252", "SQL_ASCII")],
    indirect=True,
    ids=lambda one: "-".join(one).replace(" ", "_"),
)
def test_texts_are_the_same_whatever_encoding_a_session_is_told(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase, told: Database
) -> None:
    postgres_server.psql(SHOP, test_database.name)
    lane = Lane.made(told, retention="consumed")
    lane.append({"0.0": [5], "1.0": [5]})
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open()
    lines = "".join(f'{i},"{said}"\n' for i, said in enumerate(TEXTS))
    reader.commit(batch, tables=[stage_numbers(group, batch, "shop.numbers", lines)])
    found = rows(told, "SELECT said, encode(convert_to(said, 'UTF8'), 'hex') FROM shop.numbers")
    assert {tuple(one) for one in found} == {(one, one.encode().hex()) for one in TEXTS}
    assert rows(told, "SELECT CAST(:t AS text)", t=TEXTS[0]) == [(TEXTS[0],)]


def test_a_session_has_the_encoding_again_after_code_of_others_ran_in_it(
    test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("PGTZ", "Asia/Kathmandu")
    monkeypatch.setenv("PGDATESTYLE", "German")
    with test_database.open() as database:

        def other(connection: Connection) -> None:
            lend(connection)
            connection.exec_driver_sql("SET client_encoding = LATIN1; SET timezone = 'EST'")

        database.transaction(other)
        names = ("client_encoding", "timezone", "datestyle")
        asked = ", ".join(f"current_setting('{name}')" for name in names)
        shown = rows(database, f"SELECT {asked}, CAST(:t AS text)", t="Ä€")
    assert shown == [("UTF8", "UTC", "ISO, MDY", "Ä€")]


@pytest.mark.parametrize("name", session.MEANING)
def test_a_session_has_its_settings_whatever_the_environment_says(
    test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PGTZ", "Asia/Kathmandu")
    monkeypatch.setenv("PGDATESTYLE", "SQL, DMY")
    value = HOSTILE[name].strip("'").replace(" ", "\\ ")
    monkeypatch.setenv("PGOPTIONS", f"-c {name}={value}")
    with test_database.open() as database:
        [[shown]] = rows(database, f"SELECT current_setting('{name}')")
    assert shown == session.MEANING[name]


@pytest.mark.parametrize("variable", ["PGTZ", "PGDATESTYLE"])
def test_behind_a_pooler_a_variable_that_wins_is_named(
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    for name, value in session.SESSION.items():
        given = value if name == "search_path" else f"'{value}'"
        postgres_server.psql(
            f"ALTER ROLE weir_app IN DATABASE {test_database.name} SET {name} = {given}"
        )
    with Database(test_database.dsn, patience=5.0, connect_patience=5.0, pooler=True) as database:
        assert rows(database, "SELECT 1") == [(1,)]
    monkeypatch.setenv(variable, {"PGTZ": "EST", "PGDATESTYLE": "German"}[variable])
    with (
        Database(test_database.dsn, patience=5.0, connect_patience=5.0, pooler=True) as database,
        raises(f"setting_invalid unset the environment variable {variable}"),
    ):
        rows(database, "SELECT 1")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "WIN1252", "EUC_JP"])
def test_a_database_that_cannot_hold_every_text_is_refused(
    postgres_server: EmbeddedPostgres, encoding: str
) -> None:
    name = f"in_{encoding.lower()}"
    postgres_server.psql(
        f"CREATE DATABASE {name} OWNER weir_owner ENCODING '{encoding}' LOCALE_PROVIDER libc "
        "LOCALE 'C' TEMPLATE template0"
    )
    with raises(f"database_unsuitable {encoding} ENCODING 'UTF8' TEMPLATE template0"):
        migrate.upgrade(postgres_server.dsn(name, "weir_owner"))
    with Database(
        postgres_server.dsn(name, "weir_owner"), patience=5.0, connect_patience=5.0
    ) as database:
        [found] = examine(Settings(), database)  # and no further check
        assert (found.what, found.ok) == ("database", False)
        assert encoding in found.found
        assert "ENCODING 'UTF8' TEMPLATE template0" in found.remedy
    postgres_server.psql(f"DROP DATABASE {name}")


def test_a_login_that_runs_no_triggers_publishes_nothing(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    of_login = f"ALTER ROLE weir_app IN DATABASE {test_database.name} "
    postgres_server.psql(
        f"{SHOP}; {of_login} SET session_replication_role = replica", test_database.name
    )
    with test_database.open() as database:
        lane = Lane.made(database, retention="consumed")
        lane.append({"0.0": [5], "1.0": [5]})
        reader = Group.made(lane).reader()
        batch = reader.must_open()
        ready = stage_numbers(reader.group, batch, "shop.numbers")
        with raises("table_refused shop.numbers weir_app session_replication_role"):
            reader.commit(batch, tables=[ready])
        [rights] = [one for one in examine(Settings(), database) if one.what == "rights"]
        assert rights.ok is False
        assert "RESET session_replication_role" in rights.remedy
