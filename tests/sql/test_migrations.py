"""Migrations: they make what sql/ says, keep all data, and leave alone what others made."""

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, ExceptionContext, NullPool, create_engine, event

from tests.raises import raises
from tests.sql.catalogue import describe, differences
from tests.sql.seed import SEEDS, fill
from weir.database import migrate
from weir.database.definitions import files, grants, replace_definitions, split
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.source_tree import beside

FOLDER = beside("sql")
NOW = "now"  # a database of this version, as the story of the seeds leaves it
VERSIONS = [*sorted(path.name.removesuffix(".sql.gz") for path in SEEDS.glob("*.sql.gz")), NOW]
New = Callable[[str], str]


@pytest.fixture(scope="module")
def filled(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """A database of this version to copy."""
    postgres_server.psql("CREATE DATABASE filled_now OWNER weir_owner")
    fill(postgres_server, "filled_now")
    yield "filled_now"
    postgres_server.psql("DROP DATABASE filled_now WITH (FORCE)")


@pytest.fixture
def new(postgres_server: EmbeddedPostgres, filled: str) -> Iterator[New]:
    """Makes a database, with the seed of a version if one is given; returns the owner's dsn."""
    made: list[str] = []

    def make(seed: str = "") -> str:
        name = f"migrated_{len(made)}"
        template = f" TEMPLATE {filled}" if seed == NOW else ""
        postgres_server.psql(f"CREATE DATABASE {name} OWNER weir_owner{template}")
        made.append(name)
        if seed not in ("", NOW):
            dump = gzip.decompress((SEEDS / f"{seed}.sql.gz").read_bytes()).decode()
            postgres_server.psql(dump, database=name)
        return postgres_server.dsn(name, "weir_owner")

    yield make
    for name in made:
        postgres_server.psql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the folder sql, to be changed as a later version would."""
    return shutil.copytree(FOLDER, tmp_path / "sql")


def run(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor) if cursor.description else []
    finally:
        connection.close()


def make_from_files(dsn: str, folder: Path = FOLDER) -> None:
    """A database as sql/ describes it, without migrations."""

    def make(connection: Connection) -> None:
        connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
        for path in files(folder, "schema"):
            connection.exec_driver_sql(path.read_text())
        replace_definitions(connection, folder)
        connection.exec_driver_sql(grants(folder))

    engine = create_engine(
        "postgresql+psycopg2://", creator=lambda: psycopg2.connect(dsn), poolclass=NullPool
    )
    with engine.begin() as connection:
        make(connection.execution_options(no_parameters=True))


@pytest.mark.parametrize(("version", "refused"), [(150018, "15"), (90624, "9"), (160000, "")])
def test_a_server_that_lacks_what_roles_need_is_refused_by_its_version(
    version: int, refused: str
) -> None:
    if refused:
        with raises(f"database_unsuitable {refused}, and Weir needs 16"):
            migrate.check_server(version)
    else:
        migrate.check_server(version)


def rows_of_tables(dsn: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, by the name of the table."""
    tables = run(
        dsn,
        """SELECT format('%I.%I', schemaname, tablename), tablename FROM pg_tables
        WHERE schemaname IN ('weir', 'weir_internal') AND tablename <> 'alembic_version'""",
    )
    return {
        name: [
            row for (row,) in run(dsn, f"SELECT to_jsonb(t) FROM {table} t ORDER BY to_jsonb(t)")
        ]
        for table, name in tables
    }


# What people may have asked: streams, groups, positions, decisions, files.
QUESTIONS = """
SELECT stream, state, created_at, current_epoch, head, tail FROM weir.streams ORDER BY stream
SELECT stream, events_appended, events_retained, bytes_retained FROM weir.streams ORDER BY stream
SELECT * FROM weir.epoch_record ORDER BY stream, epoch
SELECT stream, segment, key_low, key_high, sealed_epoch, events FROM weir.segments ORDER BY 1, 2
SELECT stream, transaction_number, state, clock, rejected FROM weir.transactions ORDER BY 1, 2
SELECT stream, writer_id, batch_id, events, bytes, files FROM weir.transactions ORDER BY 1, 2, 3
SELECT * FROM weir.data_files ORDER BY stream, segment, start_offset
SELECT * FROM weir.positions ORDER BY reader_group, stream, segment
SELECT reader_group, stream, unread_events, lost_events, position FROM weir.lag ORDER BY 1, 2
SELECT reader_group, streams, checkpoint FROM weir.reader_groups ORDER BY 1
SELECT reader_group, batch_id, state, events, bounds, outputs FROM weir.batches ORDER BY 1, 2
SELECT * FROM weir.checkpoints ORDER BY reader_group, checkpoint
SELECT * FROM weir.pins ORDER BY reader_group
SELECT * FROM weir.retention_decisions ORDER BY stream, decided_at
SELECT stream, reader_group, released, held_events FROM weir.subscribers ORDER BY 1, 2
SELECT * FROM weir.parquet_outputs ORDER BY path
SELECT request_id, object, result, ended_at FROM weir.requests ORDER BY ended_at, request_id
SELECT * FROM weir.job_runs ORDER BY started_at
SELECT * FROM weir.segments_between('nyc/flights') ORDER BY 1
""".strip().splitlines()


def answers(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    return {question: run(dsn, question) for question in QUESTIONS}


def test_the_migrations_make_the_schema_of_the_files(new: New) -> None:
    migrated, made = new(""), new("")
    migrate.upgrade(migrated)
    make_from_files(made)
    assert len(describe(made)) > 500
    assert differences(describe(migrated), describe(made)) == []


def test_an_upgrade_puts_no_error_into_the_servers_log(new: New) -> None:
    dsn = new("")
    migrate.upgrade(dsn)
    errors: list[str] = []

    def note(context: ExceptionContext) -> None:
        errors.append(str(context.original_exception))

    event.listen(Engine, "handle_error", note)
    try:
        migrate.upgrade(dsn)
    finally:
        event.remove(Engine, "handle_error", note)
    assert errors == []


def test_a_database_of_an_earlier_version_is_upgraded_with_all_that_is_in_it(new: New) -> None:
    made = new("")
    make_from_files(made)
    for version in VERSIONS:
        old = new(version)
        rows, asked = rows_of_tables(old), answers(old)
        assert all(asked.values()), "there is something to lose"
        migrate.upgrade(old)
        found = differences(describe(old), describe(made))
        print(*found, sep="\n")
        assert found == []
        assert answers(old) == asked
        kept = rows_of_tables(old)
        for table, before in rows.items():
            assert len(kept[table]) == len(before)
            left = list(kept[table])
            for row in before:  # each row has one of its own
                same = [found for found in left if row.items() <= found.items()]
                assert same, (table, row)
                left.remove(same[0])
        migrate.upgrade(old)
        assert answers(old) == asked
        assert differences(describe(old), describe(made)) == []


def test_each_migration_begins_with_a_version_that_has_a_seed() -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER / "migrations"))
    config.set_main_option("path_separator", "os")
    steps = list(ScriptDirectory.from_config(config).walk_revisions())
    begun = {str(step.down_revision) for step in steps if step.down_revision}
    assert begun <= set(VERSIONS)


def test_a_migration_that_differs_from_the_files_is_found(new: New, changed: Path) -> None:
    versions = changed / "migrations" / "versions"
    (versions / "0.2.0_more.py").write_text(
        '"""More."""\nfrom alembic import op\nrevision = "0.2.0"\ndown_revision = "0.1.0"\n'
        "def upgrade() -> None:\n"
        '    op.execute("ALTER TABLE weir_internal.stream ADD COLUMN more bigint")\n'
    )
    migrated, made = new(""), new("")
    migrate.upgrade(migrated, changed)
    make_from_files(made, changed)
    [found] = differences(describe(migrated), describe(made))
    assert found.startswith("- column weir_internal.stream.more: bigint")
    table = changed / "schema" / "02_streams.sql"
    text = table.read_text()
    table.write_text(
        text.replace("    scope text NOT NULL", "    more bigint,\n    scope text NOT NULL")
    )
    other = new("")
    make_from_files(other, changed)
    assert differences(describe(migrated), describe(other)) == []


# What a person made of Weir's views and functions, in a schema of his own and in Weir's.
OWN = """
CREATE VIEW public.late AS SELECT reader_group, stream FROM weir.lag WHERE unread_events > 0;
CREATE MATERIALIZED VIEW public.sizes AS SELECT * FROM weir.stream_state;
CREATE VIEW weir.mine AS SELECT * FROM public.late;
CREATE FUNCTION public.active(name text) RETURNS bigint LANGUAGE sql
    RETURN (SELECT count(*) FROM weir.active_segments(name));
CREATE TABLE weir.notes AS SELECT 'kept' AS note;
CREATE FUNCTION weir.noted() RETURNS text LANGUAGE sql AS 'SELECT note FROM weir.notes';
GRANT SELECT ON weir.lag TO PUBLIC;
GRANT SELECT (stream) ON weir.segments TO weir_publisher;
GRANT SELECT ON weir.positions TO weir_app WITH GRANT OPTION;
GRANT EXECUTE ON FUNCTION weir.active_segments TO PUBLIC;
"""
ASKED_OF_OWN = """
SELECT *, public.active('nyc/flights') FROM weir.mine ORDER BY 1
SELECT stream FROM public.sizes ORDER BY 1
SELECT weir.noted()
SELECT has_table_privilege('airflow', 'weir.lag', 'SELECT')
SELECT has_column_privilege('weir_publisher', 'weir.segments', 'stream', 'SELECT')
SELECT has_table_privilege('weir_app', 'weir.positions', 'SELECT WITH GRANT OPTION')
SELECT has_function_privilege('airflow', 'weir.active_segments(text, timestamptz)', 'EXECUTE')
""".strip().splitlines()


def asked_of_own(dsn: str) -> list[list[tuple[Any, ...]]]:
    return [run(dsn, question) for question in ASKED_OF_OWN]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_leaves_views_and_grants_of_others_alone(new: New, version: str) -> None:
    dsn = new(version)
    run(dsn, OWN)
    before = asked_of_own(dsn)
    assert all(before)
    assert before[2:] == [[("kept",)], *[[(True,)]] * 4]
    migrate.upgrade(dsn)
    assert asked_of_own(dsn) == before


# What the upgrade from a version makes anew, because other columns would be in the way.
MADE_ANEW: dict[str, list[str]] = {NOW: []}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_keeps_a_view_of_others_on_each_view_or_names_it(new: New, version: str) -> None:
    dsn = new(version)
    views = run(dsn, "SELECT 'weir.' || viewname FROM pg_views WHERE schemaname = 'weir'")
    kept = sorted({name for (name,) in views} - {*MADE_ANEW[version]})
    for number, name in enumerate(kept):
        run(dsn, f"CREATE VIEW public.kept_{number} AS SELECT * FROM {name}")
    for name in MADE_ANEW[version]:
        run(dsn, f"CREATE VIEW public.in_the_way AS SELECT * FROM {name}")
        with raises(f"database_unsuitable in_the_way {name.partition('(')[0]} others"):
            migrate.upgrade(dsn)
        run(dsn, "DROP VIEW public.in_the_way")
    migrate.upgrade(dsn)
    for number in range(len(kept)):
        run(dsn, f"SELECT * FROM public.kept_{number}")


def without_column(folder: Path) -> None:
    """As if a later version had taken a column out of weir.lag, which other views are made of."""
    file = folder / "views" / "20_reader_groups.sql"
    text = file.read_text()
    assert "       gs.lost_events + CASE" in text
    file.write_text(
        text.replace("p.cut AS position,", "p.cut AS place,").replace(
            "weir.lag.position IS", "weir.lag.place IS"
        )
    )


def test_a_view_that_others_use_is_not_replaced_by_another_one(new: New, changed: Path) -> None:
    dsn = new(NOW)
    migrate.upgrade(dsn)
    run(dsn, OWN)
    before, described = asked_of_own(dsn), describe(dsn)
    without_column(changed)
    with raises("database_unsuitable view late view weir.lag others"):
        migrate.upgrade(dsn, changed)
    assert asked_of_own(dsn) == before
    assert describe(dsn) == described


def test_a_view_that_is_made_anew_keeps_its_grants(new: New, changed: Path) -> None:
    dsn = new(NOW)
    migrate.upgrade(dsn)
    run(
        dsn,
        """GRANT SELECT ON weir.lag TO PUBLIC;
        GRANT SELECT (checkpoint) ON weir.unread TO weir_publisher WITH GRANT OPTION;
        GRANT SELECT ON weir.catch_up TO weir_app WITH GRANT OPTION""",
    )
    without_column(changed)
    migrate.upgrade(dsn, changed)
    assert run(dsn, "SELECT count(place) FROM weir.lag") == [(3,)]
    assert run(
        dsn,
        """SELECT has_table_privilege('airflow', 'weir.lag', 'SELECT'),
            has_table_privilege('weir_reader', 'weir.lag', 'SELECT'),
            has_column_privilege('weir_publisher', 'weir.unread', 'checkpoint',
                                 'SELECT WITH GRANT OPTION'),
            has_column_privilege('weir_publisher', 'weir.unread', 'stream', 'SELECT'),
            has_table_privilege('weir_app', 'weir.catch_up', 'SELECT WITH GRANT OPTION')""",
    ) == [(True, True, True, False, True)]


def test_a_function_with_another_result_is_made_anew_and_one_without_a_file_goes(
    new: New, changed: Path
) -> None:
    dsn = new("")
    migrate.upgrade(dsn)
    file = changed / "functions" / "groups.sql"
    text = file.read_text()
    assert "RETURNS TABLE (name text, created_at timestamptz, cuts jsonb)" in text
    statements = [one for one in split(text) if "held_segments" not in one]
    file.write_text("\n".join(statements).replace("SELECT c.name,", "SELECT c.name || '',"))
    migrate.upgrade(dsn, changed)
    assert run(dsn, "SELECT to_regproc('weir_internal.held_segments')") == [(None,)]
    file.write_text(
        "\n".join(statements)
        .replace("(name text, created_at", "(name varchar, created_at")
        .replace("SELECT c.name,", "SELECT c.name::varchar,")
    )
    migrate.upgrade(dsn, changed)
    [(result,)] = run(
        dsn, "SELECT pg_get_function_result('weir_internal.last_checkpoint'::regproc)"
    )
    assert result.startswith("TABLE(name character varying")


def test_a_login_that_may_not_migrate_and_a_server_that_is_away_are_named(new: New) -> None:
    dsn = new("")
    before = describe(dsn)
    with raises("not_permitted right owns"):
        migrate.upgrade(dsn.replace("weir_owner", "weir_app"))
    with raises("database_unavailable migrated runs WEIR_DATABASE_OWNER"):
        migrate.upgrade("host=127.0.0.1 port=9 dbname=weir user=weir_owner")
    assert describe(dsn) == before


def test_a_migration_waits_only_so_long_for_those_who_use_a_table(new: New) -> None:
    dsn = new(NOW)
    before = describe(dsn)
    other = psycopg2.connect(dsn)
    other.cursor().execute("LOCK TABLE weir_internal.segment IN ACCESS EXCLUSIVE MODE")
    with raises("lock_held database"):
        migrate.upgrade(dsn, patience=1)
    other.close()
    assert describe(dsn) == before


def test_a_layout_of_a_later_version_is_refused(new: New) -> None:
    dsn = new(NOW)
    run(dsn, "UPDATE weir_internal.alembic_version SET version_num = '9.9.9'")
    before = describe(dsn)
    with raises("database_unsuitable 9.9.9 migrated"):
        migrate.upgrade(dsn)
    assert describe(dsn) == before
