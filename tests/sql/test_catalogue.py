"""The schema in the database: comments on everything, and what each login may do."""

import psycopg2
import pytest
from psycopg2 import errors

from tests.conftest import TestDatabase
from weir.local.embedded_postgres import EmbeddedPostgres


def _rows(dsn: str, sql: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []
    finally:
        connection.close()


def test_everything_has_a_comment_but_columns_that_refer_to_another_table(
    test_database: TestDatabase,
) -> None:
    bare = _rows(
        test_database.owner_dsn,
        """SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace IN ('weir'::regnamespace, 'weir_internal'::regnamespace)
          AND c.relkind IN ('r', 'v')
          AND (obj_description(c.oid, 'pg_class') IS NULL
               OR a.attnum IS NOT NULL AND col_description(c.oid, a.attnum) IS NULL
                  AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conrelid = c.oid
                                  AND f.contype = 'f' AND a.attnum = ANY (f.conkey)))
        UNION ALL
        SELECT p.proname, NULL FROM pg_proc p
        WHERE p.pronamespace IN ('weir'::regnamespace, 'weir_internal'::regnamespace)
          AND obj_description(p.oid, 'pg_proc') IS NULL""",
    )
    assert bare == []


def test_functions_with_rights_of_others_look_in_temporary_tables_and_types_last(
    test_database: TestDatabase,
) -> None:
    others = _rows(
        test_database.owner_dsn,
        """SELECT CAST(oid AS regprocedure), proconfig FROM pg_proc
        WHERE pronamespace IN ('weir'::regnamespace, 'weir_internal'::regnamespace)
          AND prosecdef AND NOT coalesce(proconfig, '{}') @> '{"search_path=pg_catalog, pg_temp"}'
        """,
    )
    assert others == []


def test_what_people_may_ask_is_in_one_schema_and_the_tables_are_in_another(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    views, tables = (
        _rows(
            test_database.owner_dsn,
            f"""SELECT CAST(oid AS regclass), relkind FROM pg_class WHERE relkind IN ('r', 'v')
            AND relnamespace = '{schema}'::regnamespace""",
        )
        for schema in ("weir", "weir_internal")
    )
    assert {kind for _, kind in views} == {"v"}
    assert {str(name) for name, kind in tables if kind == "v"} == {
        f"weir_internal.{one}"
        for one in ("hidden_stream", "hidden_group", "hidden_store", "held_garbage", "annex_file")
    }, "for policies, and what annexes fill"
    for name, _ in views:
        _rows(dsn, f"SELECT * FROM {name}")
    for name in [name for name, kind in tables if kind == "r"]:
        with pytest.raises(errors.InsufficientPrivilege):
            _rows(dsn, f"DELETE FROM {name} RETURNING 1")


def test_readers_call_no_function_that_changes_something(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    [(callable_,)] = _rows(
        dsn,
        """SELECT bool_and(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc
        WHERE pronamespace = 'weir'::regnamespace""",
    )
    assert callable_
    with pytest.raises(errors.InsufficientPrivilege, match="begin_compaction"):
        _rows(dsn, "SELECT weir_internal.begin_compaction(1, 60)")
    powers = """SELECT CAST(oid AS regprocedure) FROM pg_proc
        WHERE pronamespace = 'weir_internal'::regnamespace AND prosecdef AND provolatile = 'v'
          AND has_function_privilege(oid, 'EXECUTE')"""
    closes = "weir_internal.close_stream(bigint,bigint)"  # as weir.closed_cut_at does
    assert [str(one) for (one,) in _rows(dsn, powers)] == [closes]
    assert len(_rows(test_database.dsn, powers)) >= 4


def test_the_jobs_login_changes_rows_but_no_table(test_database: TestDatabase) -> None:
    assert _rows(test_database.dsn, "SELECT count(*) FROM weir_internal.stream") == [(0,)]
    for forbidden in (
        "ALTER TABLE weir_internal.stream ADD COLUMN more text",
        "CREATE TABLE weir.more (id int)",
        "DROP VIEW weir.lag",
        "UPDATE weir_internal.installation SET installation_id = gen_random_uuid()",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            _rows(test_database.dsn, forbidden)
