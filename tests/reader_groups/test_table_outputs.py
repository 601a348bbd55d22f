"""Tables as outputs: rows become visible exactly with the positions, of one attempt only."""

import io
from collections.abc import Callable, Iterator
from typing import Any

import psycopg2
import pytest
from sqlalchemy import Connection, exc, text

from tests.controller.support import Lane, rows, run, unique
from tests.raises import raises
from tests.reader_groups.support import Group
from weir.database.connection import copy_in
from weir.errors import (
    Fenced,
    WeirError,
)
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.batches import Batch
from weir.reader_groups.groups import delete_reader_group
from weir.reader_groups.table_outputs import (
    StagedTable,
    drop_staging,
    make_staging,
    publish_tables,
    read_table,
    sweep_staging,
)

Execute = Callable[..., None]


@pytest.fixture
def table(as_owner: Execute) -> str:
    """A table for numbers, which must be unique."""
    schema = unique("shop").replace("-", "_")
    as_owner(
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.numbers (n bigint PRIMARY KEY, said text, at date DEFAULT 'today')",
        f"GRANT USAGE ON SCHEMA {schema} TO weir_jobs, weir_publisher",
        f"GRANT SELECT, INSERT ON {schema}.numbers TO weir_jobs, weir_publisher",
    )
    return f"{schema}.numbers"


@pytest.fixture
def group(lane: Lane) -> Group:
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    return Group.made(lane)


def stage(group: Group, batch: Batch, table: str, csv: str = "1,one\n2,\n") -> StagedTable:
    """Stage rows as executors do, by one copy."""
    columns = [c for c in group.database.transaction(lambda c: read_table(c, table))
               if c.name != "at"]  # fmt: skip
    staging, copy = make_staging(group.database, batch, 0, columns)
    rows = io.BytesIO(csv.encode())
    piece = group.database.transaction(lambda c: copy_in(c, copy, rows))
    return StagedTable(table, staging, (piece,), csv.count("\n"))


def numbers(group: Group, table: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in rows(group.database, f"SELECT n, said FROM {table} ORDER BY n")]


def staged(group: Group) -> list[str]:
    found = group.rows(
        """SELECT relname FROM pg_class WHERE relnamespace = 'weir_staging'::regnamespace
        AND relname LIKE 'g' || :g || '\\_%'"""
    )
    return sorted(row.relname for row in found)


def test_rows_and_positions_are_published_together(group: Group, table: str) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table)
    assert (numbers(group, table), staged(group)) == ([], [ready.staging])
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert rows(group.database, f"SELECT FROM {table} WHERE at = current_date").__len__() == 2
    assert (group.cut(), staged(group)) == ({"0.0": 10, "1.0": 10}, [])
    assert group.batches()[0].outputs == [{"kind": "table", "output": table, "rows": 2}]
    reader.commit(batch, tables=[ready])
    assert len(numbers(group, table)) == 2, "committing again publishes nothing"


def test_an_attempt_that_was_taken_over_publishes_nothing(group: Group, table: str) -> None:
    zombie = group.reader("a")
    before = zombie.must_open()
    ready = stage(group, before, table, "7,zombie\n")
    reader = group.reader("a")
    batch = reader.must_open()
    with pytest.raises(Fenced):
        zombie.commit(before, tables=[ready])
    with pytest.raises(Fenced):
        stage(group, before, table)
    reader.commit(batch, tables=[stage(group, batch, table)])
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert staged(group) == [ready.staging]
    assert ready.staging in sweep_staging(group.database)
    assert staged(group) == []


def test_a_copy_that_nobody_reported_does_not_count(group: Group, table: str) -> None:
    # The task's answer was lost after its COMMIT, so that it was run again.
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table)
    again = f"COPY weir_staging.{ready.staging} (n, said) FROM STDIN (FORMAT csv)"
    group.database.transaction(lambda c: copy_in(c, again, io.BytesIO(b"1,one\n2,\n")))
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]


def test_rows_that_postgres_lost_in_a_crash_keep_the_positions_where_they_are(
    group: Group, table: str, as_owner: Execute
) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table)
    as_owner(f"TRUNCATE weir_staging.{ready.staging}")  # what a crash does to it
    with raises("staged_rows_lost 0 of 2"):
        reader.commit(batch, tables=[ready])
    assert (numbers(group, table), group.cut()) == ([], {"0.0": 0, "1.0": 0})
    reader.commit(batch, tables=[stage(group, batch, table)])
    assert len(numbers(group, table)) == 2


def test_rows_that_break_a_constraint_keep_the_positions_where_they_are(
    group: Group, table: str
) -> None:
    run(group.database, f"INSERT INTO {table} VALUES (2, 'there before')")
    reader = group.reader()
    batch = reader.must_open()
    with raises(f"rows_refused {table}: duplicate key"):
        reader.commit(batch, tables=[stage(group, batch, table)])
    assert numbers(group, table) == [(2, "there before")]
    assert group.cut() == {"0.0": 0, "1.0": 0}


def test_several_tables_are_published_together(group: Group, table: str, as_owner: Execute) -> None:
    other = f"{table}_too"
    as_owner(
        f"CREATE TABLE {other} (n bigint)",
        f"GRANT SELECT, INSERT ON {other} TO weir_jobs, weir_publisher",
    )
    reader = group.reader()
    batch = reader.must_open()
    columns = group.database.transaction(lambda c: read_table(c, other))
    staging, copy = make_staging(group.database, batch, 1, columns)
    piece = group.database.transaction(lambda c: copy_in(c, copy, io.BytesIO(b"3\n")))
    reader.commit(
        batch, tables=[stage(group, batch, table), StagedTable(other, staging, (piece,), 1)]
    )
    assert len(numbers(group, table)) == 2
    assert [tuple(r) for r in rows(group.database, f"SELECT * FROM {other}")] == [(3,)]


def test_what_is_staged_by_the_attempt_that_may_commit_is_kept(group: Group, table: str) -> None:
    reader = group.reader()
    ready = stage(group, reader.must_open(), table)
    assert ready.staging not in sweep_staging(group.database)
    drop_staging(group.database, ready.staging)
    drop_staging(group.database, ready.staging)
    ready = stage(group, reader.must_open(), table)
    assert staged(group) == [ready.staging]
    delete_reader_group(group.database, group.name, request_id=unique("delete"))
    sweep_staging(group.database)
    assert staged(group) == []


def test_what_is_no_table_for_results_is_refused_in_a_sentence(
    group: Group, table: str, as_owner: Execute
) -> None:
    schema = table.partition(".")[0]
    as_owner(f"CREATE TABLE {schema}.hidden (n int)", f"CREATE VIEW {schema}.view AS SELECT 1 AS n")
    for name, wanted in (
        ("weir.stream", "table_not_allowed"),
        ("weir_staging.x", "table_not_allowed"),
        ("pg_catalog.pg_class", "table_not_allowed"),
        ("orders", "table_name_invalid"),
        ('shop."x"; DROP TABLE y', "table_name_invalid"),
        (f"{schema}.nowhere", "table_not_found nowhere"),
        (f"{schema}.view", "table_not_allowed view"),
        (f"{schema}.hidden", f"right_missing GRANT INSERT ON {schema}.hidden TO weir_publisher"),
    ):  # fmt: skip
        with raises(wanted):
            group.database.transaction(lambda c, name=name: read_table(c, name))


def test_columns_are_read_as_they_are(group: Group, table: str, as_owner: Execute) -> None:
    schema = table.partition(".")[0]
    as_owner(
        f"CREATE TYPE {schema}.mood AS ENUM ('good', 'bad')",
        f"CREATE DOMAIN {schema}.money AS numeric(10, 2) CHECK (value > 0)",
        f"""CREATE TABLE {schema}.many (
            id bigint GENERATED ALWAYS AS IDENTITY, must text NOT NULL, "Odd ""%name: x" text,
            price {schema}.money, mood {schema}.mood, short varchar(3), any_number numeric,
            doubled int GENERATED ALWAYS AS (2) STORED, gone int, given int NOT NULL DEFAULT 5)""",
        f"ALTER TABLE {schema}.many DROP COLUMN gone",
        f"GRANT SELECT, INSERT ON {schema}.many TO weir_jobs, weir_publisher",
    )
    many = f"{schema}.many"
    columns = group.database.transaction(lambda c: read_table(c, many))
    assert [(c.name, c.kind, c.scale, c.required, c.generated) for c in columns] == [
        ("id", "int8", None, False, True), ("must", "text", None, True, False),
        ('Odd "%name: x', "text", None, False, False), ("price", "numeric", 2, False, False),
        ("mood", "mood", None, False, False), ("short", "varchar", None, False, False),
        ("any_number", "numeric", None, False, False), ("doubled", "int4", None, False, True),
        ("given", "int4", None, False, False),
    ]  # fmt: skip
    reader = group.reader()
    batch = reader.must_open()
    given = [c for c in columns if not c.generated and c.name != "given"]
    staging, copy = make_staging(group.database, batch, 0, given)
    csv = b'"a","100% :x","1.50","bad","abc","1e3"\n'
    piece = group.database.transaction(lambda c: copy_in(c, copy, io.BytesIO(csv)))
    reader.commit(batch, tables=[StagedTable(many, staging, (piece,), 1)])
    [row] = rows(group.database, f"SELECT * FROM {many}")
    assert tuple(map(str, row)) == (
        "1", "a", "100% :x", "1.50", "bad", "abc", "1000", "2", "5",
    )  # fmt: skip


CHANGES = [
    "RENAME COLUMN said TO told",
    "ALTER COLUMN said TYPE varchar(2)",
    "ALTER COLUMN n TYPE int",
    "DROP COLUMN said",
    "ADD COLUMN must int NOT NULL",
    "DROP COLUMN said, ADD COLUMN said text GENERATED ALWAYS AS ('x') STORED",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_column_that_is_changed_before_the_commit_keeps_the_positions_where_they_are(
    group: Group, table: str, as_owner: Execute, change: str
) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table, "7,seven\n")
    as_owner(f"ALTER TABLE {table} {change}")
    with raises(f"table_changed column {table}") as failed:
        reader.commit(batch, tables=[ready])
    assert failed.value.retryable, "the next try sees the columns as they are now"
    assert rows(group.database, f"SELECT FROM {table}") == []
    assert group.cut() == {"0.0": 0, "1.0": 0}


def test_a_column_that_is_changed_so_that_rows_keep_their_meaning_is_fine(
    group: Group, table: str, as_owner: Execute
) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table)
    as_owner(f"ALTER TABLE {table} ADD COLUMN more int NOT NULL DEFAULT 3, ADD COLUMN note text")
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]


def trigger(table: str, body: str, timing: str = "BEFORE INSERT") -> list[str]:
    """What gives a table a trigger with this body, in the table's schema."""
    schema = table.partition(".")[0]
    constraint = "CONSTRAINT " if "DEFER" in timing else ""
    first, _, rest = timing.partition(" DEFER")
    return [
        f"""CREATE FUNCTION {schema}.f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {body} RETURN NEW; END $$""",
        f"CREATE {constraint}TRIGGER t {first} ON {table} {'DEFER' + rest if rest else ''} "
        f"FOR EACH ROW EXECUTE FUNCTION {schema}.f()",
    ]


def test_a_trigger_finds_what_its_tables_owner_finds(
    group: Group, table: str, as_owner: Execute
) -> None:
    schema = table.partition(".")[0]
    as_owner(
        f"CREATE TABLE {schema}.log (n bigint)",
        f"GRANT INSERT ON {schema}.log TO weir_publisher",
        f"GRANT SELECT ON {schema}.log TO weir_jobs",
        *trigger(table, "INSERT INTO log VALUES (NEW.n);"),
        f"ALTER ROLE weir_owner IN DATABASE reader_groups SET search_path = {schema}, public",
    )
    try:
        reader = group.reader()
        batch = reader.must_open()
        reader.commit(batch, tables=[stage(group, batch, table)])
    finally:
        as_owner("ALTER ROLE weir_owner IN DATABASE reader_groups RESET search_path")
    found = rows(group.database, f"SELECT n FROM {schema}.log ORDER BY n")
    assert [tuple(row) for row in found] == [(1,), (2,)]


@pytest.fixture
def stranger(postgres_server: EmbeddedPostgres, as_owner: Execute, table: str) -> Iterator[str]:
    """Makes the table that of a role without any right in Weir."""
    name = unique("stranger").replace("-", "_")
    schema = table.partition(".")[0]
    as_owner(
        f"CREATE ROLE {name}",
        f"GRANT {name} TO weir_owner",
        f"GRANT ALL ON SCHEMA {schema} TO {name}",
        f"ALTER TABLE {table} OWNER TO {name}",
        f"SET ROLE {name}",
    )
    yield name
    as_owner(f"DROP SCHEMA {schema} CASCADE", f"DROP ROLE {name}")


HOSTILE = {
    "acting": ("DELETE FROM weir_internal.request;", "BEFORE INSERT"),
    "asking for the role": (
        "SET ROLE weir_app; DELETE FROM weir_internal.request;", "BEFORE INSERT"),
    "going back": ("RESET ROLE; DELETE FROM weir_internal.request;", "AFTER INSERT"),
    "put off": (
        "DELETE FROM weir_internal.request;", "AFTER INSERT DEFERRABLE INITIALLY DEFERRED"),
    "put off again": (
        "IF NEW.said = 'one' THEN SET CONSTRAINTS ALL DEFERRED; "
        "UPDATE {t} SET said = 'again' WHERE n = NEW.n; "
        "ELSIF NEW.said = 'again' THEN DELETE FROM weir_internal.request; END IF;",
        "AFTER INSERT OR UPDATE DEFERRABLE INITIALLY DEFERRED"),
}  # fmt: skip


@pytest.mark.parametrize("how", HOSTILE)
def test_a_tables_owner_gets_no_rights_of_the_jobs_by_a_trigger(
    group: Group, table: str, as_owner: Execute, stranger: str, how: str
) -> None:
    body, timing = HOSTILE[how]
    as_owner(
        f"SET ROLE {stranger}",
        *trigger(table, body.replace("{t}", table), timing),
        f"GRANT SELECT, UPDATE ON {table} TO weir_publisher",
    )
    before = rows(group.database, "SELECT count(*) FROM request")
    reader = group.reader()
    batch = reader.must_open()
    says = "permission denied for schema weir|cannot set parameter|trigger_deferrable"
    with pytest.raises((WeirError, exc.DBAPIError), match=says):
        reader.commit(batch, tables=[stage(group, batch, table)])
    assert rows(group.database, "SELECT count(*) FROM request") == before
    assert (numbers(group, table), group.cut()) == ([], {"0.0": 0, "1.0": 0})


MEDDLING = {
    "at once": ("DROP OWNED BY weir_publisher;", "AFTER INSERT"),
    "put off": ("DROP OWNED BY weir_publisher;", "AFTER INSERT DEFERRABLE INITIALLY DEFERRED"),
    "taking rights": (
        "REVOKE EXECUTE ON FUNCTION weir_internal.publish_staging FROM weir_jobs;", "AFTER INSERT"),
    "taking settings": (
        "ALTER FUNCTION weir_internal.settle_constraints RESET ALL;", "AFTER INSERT"),
}  # fmt: skip


@pytest.mark.parametrize("how", MEDDLING)
def test_a_trigger_can_not_change_what_other_groups_publish_with(
    group: Group, table: str, as_owner: Execute, how: str
) -> None:
    as_owner(*trigger(table, *MEDDLING[how]))
    reader = group.reader()
    batch = reader.must_open()
    with raises("right_missing" if "taking" in how else f"trigger_changed_functions {table}"):
        reader.commit(batch, tables=[stage(group, batch, table)])
    as_owner(f"DROP TRIGGER t ON {table}")
    reader.commit(batch, tables=[stage(group, batch, table)])
    assert numbers(group, table) == [(1, "one"), (2, None)]


def test_what_a_trigger_sets_rules_no_later_statement_nor_the_commit(
    group: Group, table: str, as_owner: Execute
) -> None:
    left = "SET synchronous_commit = local; SET search_path = public, pg_catalog;"
    as_owner(*trigger(table, left, "AFTER INSERT"))
    reader = group.reader()
    batch = reader.must_open()
    ready = stage(group, batch, table)

    def work(connection: Connection) -> tuple[str, str, str]:
        def setting(name: str) -> str:
            return str(connection.execute(text(f"SHOW {name}")).scalar_one())

        before = setting("synchronous_commit")
        publish_tables(connection, [ready], {})
        return before, setting("synchronous_commit"), setting("search_path")

    before, after, path = group.database.transaction(work)
    assert before == after  # a server of tests is set to off
    assert path == "pg_catalog, pg_temp"


def test_what_a_trigger_leaves_in_its_session_meets_no_later_statement(
    group: Group, table: str, as_owner: Execute, stranger: str
) -> None:
    as_owner(
        f"SET ROLE {stranger}",
        *trigger(
            table, f"PERFORM set_config('search_path', '{stranger}, weir_internal, weir', false);"
        ),
    )
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch, tables=[stage(group, batch, table)])
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert {row[0] for row in (rows(group.database, "SHOW search_path")[0] for _ in range(8))} == {
        "weir_internal, weir"
    }


def test_jobs_make_no_tables_but_these_and_readers_not_even_them(
    postgres_server: EmbeddedPostgres, group: Group
) -> None:
    with pytest.raises(exc.ProgrammingError, match="permission denied"):
        run(group.database, "CREATE TABLE weir_staging.mine (n int)")
    connection = psycopg2.connect(postgres_server.dsn("reader_groups", "weir_view"))
    for call in ("make_staging('x', '{n}', '{20}', '{-1}')", "drop_staging('x')"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            connection.cursor().execute(f"SELECT weir_internal.{call}")
        connection.rollback()
    connection.close()
