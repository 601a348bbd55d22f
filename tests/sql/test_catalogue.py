"""The schema in the database: comments on everything, and what each login may do."""

import psycopg2
import pytest
from psycopg2 import errors

from tests.conftest import TestDatabase
from weir.database import migrate
from weir.local.embedded_postgres import EmbeddedPostgres


def _rows(dsn: str, sql: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []
    finally:
        connection.close()


def test_every_table_view_column_of_a_table_and_function_has_a_comment(
    test_database: TestDatabase,
) -> None:
    bare = _rows(
        test_database.owner_dsn,
        """SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND c.relkind = 'r'
        WHERE c.relnamespace = 'weir'::regnamespace AND c.relkind IN ('r', 'v')
          AND c.relname <> 'alembic_version'
          AND (obj_description(c.oid, 'pg_class') IS NULL
               OR a.attnum IS NOT NULL AND col_description(c.oid, a.attnum) IS NULL)
        UNION ALL
        SELECT p.proname, NULL FROM pg_proc p WHERE p.pronamespace = 'weir'::regnamespace
          AND obj_description(p.oid, 'pg_proc') IS NULL""",
    )
    assert bare == []


def test_the_reader_login_reads_every_view_and_no_table(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    relations = _rows(
        test_database.owner_dsn,
        """SELECT relname, relkind FROM pg_class WHERE relnamespace = 'weir'::regnamespace
        AND relkind IN ('r', 'v') ORDER BY relname""",
    )
    assert {kind for _, kind in relations} == {"r", "v"}
    for name, kind in relations:
        if kind == "v":
            _rows(dsn, f"SELECT * FROM weir.{name}")
        else:
            with pytest.raises(errors.InsufficientPrivilege):
                _rows(dsn, f"SELECT * FROM weir.{name}")


def test_the_jobs_login_changes_rows_but_no_table(test_database: TestDatabase) -> None:
    assert _rows(test_database.dsn, "SELECT count(*) FROM weir.stream") == [(0,)]
    for forbidden in (
        "ALTER TABLE weir.stream ADD COLUMN more text",
        "CREATE TABLE weir.more (id int)",
        "DROP VIEW weir.lag",
        "UPDATE weir.installation SET installation_id = gen_random_uuid()",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            _rows(test_database.dsn, forbidden)


def test_migrating_again_changes_nothing(test_database: TestDatabase) -> None:
    columns = """SELECT table_name, column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'weir' ORDER BY 1, ordinal_position"""
    identity = "SELECT installation_id FROM weir.installation"
    before = _rows(test_database.owner_dsn, columns), _rows(test_database.owner_dsn, identity)
    migrate.upgrade(test_database.owner_dsn)
    after = _rows(test_database.owner_dsn, columns), _rows(test_database.owner_dsn, identity)
    assert before == after
    assert len(before[0]) > 100
