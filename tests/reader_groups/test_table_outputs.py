"""Tables as outputs: rows become visible exactly with the positions, of one attempt only."""

import io
from functools import partial

import psycopg2
import pytest

from tests.raises import raises
from tests.world.groups import Execute, Group, numbers, publish, stage_numbers
from tests.world.streams import rows, run, unique
from weir.database.connection import copy_in
from weir.errors import Fenced
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.outputs.tables import (
    StagedTable,
    drop_staging,
    make_staging,
    read_table,
    sweep_staging,
)


def staged(group: Group) -> list[str]:
    found = group.rows(
        """SELECT relname FROM pg_class WHERE relnamespace = 'weir_staging'::regnamespace
        AND relname LIKE 'g' || :g || '\\_%'"""
    )
    return sorted(row.relname for row in found)


def test_rows_and_positions_are_published_together(group: Group, table: str) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage_numbers(group, batch, table)
    assert (numbers(group, table), staged(group)) == ([], [ready.staging])
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert rows(group.database, f"SELECT FROM {table} WHERE at = current_date").__len__() == 2
    assert (group.cut(), staged(group)) == ({"0.0": 10, "1.0": 10}, [ready.staging])
    assert group.rows(f"SELECT FROM weir_staging.{ready.staging}") == [], "for its next batch"
    assert group.batches()[0].outputs == [{"kind": "table", "output": table, "rows": 2}]
    reader.commit(batch, tables=[ready])
    assert len(numbers(group, table)) == 2, "committing again publishes nothing"


def test_an_attempt_that_was_taken_over_publishes_nothing(group: Group, table: str) -> None:
    zombie = group.reader("a")
    before = zombie.must_open()
    ready = stage_numbers(group, before, table, "7,zombie\n")
    reader = group.reader("a")
    batch = reader.must_open()
    with pytest.raises(Fenced):
        zombie.commit(before, tables=[ready])
    with pytest.raises(Fenced):
        stage_numbers(group, before, table)
    reader.commit(batch, tables=[stage_numbers(group, batch, table)])
    assert numbers(group, table) == [(1, "one"), (2, None)]
    assert ready.staging in sweep_staging(group.database)
    assert staged(group) == [ready.staging.replace("_t1_", "_t2_")], "of the reader that is there"


def test_a_copy_that_nobody_reported_does_not_count(group: Group, table: str) -> None:
    # The task's answer was lost after its COMMIT, so that it was run again.
    reader = group.reader()
    batch = reader.must_open()
    ready = stage_numbers(group, batch, table)
    again = f"COPY weir_staging.{ready.staging} (n, said) FROM STDIN (FORMAT csv)"
    group.database.transaction(lambda c: copy_in(c, again, io.BytesIO(b"1,one\n2,\n")))
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]


def test_rows_that_postgres_lost_in_a_crash_keep_the_positions_where_they_are(
    group: Group, table: str, as_owner: Execute
) -> None:
    reader = group.reader()
    batch = reader.must_open()
    ready = stage_numbers(group, batch, table)
    as_owner(f"TRUNCATE weir_staging.{ready.staging}")  # what a crash does to it
    with raises("output_not_writable 0 of 2"):
        reader.commit(batch, tables=[ready])
    assert (numbers(group, table), group.cut()) == ([], {"0.0": 0, "1.0": 0})
    reader.commit(batch, tables=[stage_numbers(group, batch, table)])
    assert len(numbers(group, table)) == 2


def test_rows_that_break_a_constraint_keep_the_positions_where_they_are(
    group: Group, table: str
) -> None:
    run(group.database, f"INSERT INTO {table} VALUES (2, 'there before')")
    with raises(f"bad_rows {table} duplicate key function"):
        publish(group, table)
    assert numbers(group, table) == [(2, "there before")]
    assert group.cut() == {"0.0": 0, "1.0": 0}


def test_what_is_staged_by_the_attempt_that_may_commit_is_kept(group: Group, table: str) -> None:
    reader = group.reader()
    ready = stage_numbers(group, reader.must_open(), table)
    assert ready.staging not in sweep_staging(group.database)
    drop_staging(group.database, ready.staging)
    drop_staging(group.database, ready.staging)
    ready = stage_numbers(group, reader.must_open(), table)
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
        ("weir.stream", "table_refused results"),
        ("weir_staging.x", "table_refused results"),
        ("pg_catalog.pg_class", "table_refused results"),
        ("orders", "name_invalid table"),
        ('shop."x"; DROP TABLE y', "name_invalid table"),
        (f"{schema}.nowhere", "table_not_found nowhere"),
        (f"{schema}.view", "table_refused view table"),
        (f"{schema}.hidden", f"right_missing GRANT INSERT ON {schema}.hidden TO weir_publisher"),
    ):  # fmt: skip
        with raises(wanted):
            group.database.transaction(partial(read_table, name=name))


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
    ready = stage_numbers(group, batch, table, "7,seven\n")
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
    ready = stage_numbers(group, batch, table)
    as_owner(f"ALTER TABLE {table} ADD COLUMN more int NOT NULL DEFAULT 3, ADD COLUMN note text")
    reader.commit(batch, tables=[ready])
    assert numbers(group, table) == [(1, "one"), (2, None)]


def test_jobs_make_no_tables_but_these_and_readers_not_even_them(
    postgres_server: EmbeddedPostgres, group: Group
) -> None:
    with raises("database_failed weir_app permission denied"):
        run(group.database, "CREATE TABLE weir_staging.mine (n int)")
    connection = psycopg2.connect(postgres_server.dsn("reader_groups", "weir_view"))
    for call in ("make_staging('x', '{n}', '{20}', '{-1}')", "drop_staging('x')"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            connection.cursor().execute(f"SELECT weir_internal.{call}")
        connection.rollback()
    connection.close()
