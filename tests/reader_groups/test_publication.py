"""Rows get into a table as its output says, upserted by key or replacing, whoever dies."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Execute, Group
from tests.world.streams import Lane, rows, unique
from weir.database.connection import copy_in
from weir.errors import Fenced, WeirError
from weir.model.segment import segment_name
from weir.reader_groups.batch import Batch
from weir.reader_groups.outputs.publication import Publication
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table

UPSERT = Publication("upsert", ("k",))
Row = tuple[Any, ...]


@pytest.fixture
def group(lane: Lane) -> Group:
    return Group.made(lane)


@pytest.fixture
def table(as_owner: Execute) -> str:
    """A table with one row for each key."""
    schema = unique("Shop").replace("-", "_")
    as_owner(
        f'CREATE SCHEMA "{schema}"',
        f'CREATE TABLE "{schema}"."Latest" (k text PRIMARY KEY, n bigint, at bigint NOT NULL)',
        f'GRANT USAGE ON SCHEMA "{schema}" TO weir_jobs, weir_publisher',
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}"."Latest" TO weir_publisher',
        f'GRANT SELECT ON "{schema}"."Latest" TO weir_jobs',
    )
    return f"{schema}.Latest"


def quoted(table: str) -> str:
    """The table as SQL names it."""
    return ".".join(f'"{part}"' for part in table.split("."))


def stage(
    group: Group,
    batch: Batch,
    table: str,
    how: Publication,
    given: Sequence[Row],
) -> StagedTable:
    """Stage rows (k, n, at), numbered in their order, as executors do, and in no order."""
    columns = group.database.transaction(lambda c: read_table(c, table, how))
    staging, copy = make_staging(group.database, batch, 0, columns, how.ordered)
    lines = [[*row, 0, i] if how.ordered else row for i, row in enumerate(given)]
    csv = "".join(",".join(map(str, line)) + "\n" for line in reversed(lines))
    piece = group.database.transaction(lambda c: copy_in(c, copy, io.BytesIO(csv.encode())))
    return StagedTable(table, staging, (piece,), len(lines), how)


def publish(group: Group, table: str, how: Publication, *batches: Sequence[Row]) -> list[Row]:
    """Commit batches with these rows, one after the other; what is in the table then."""
    reader = group.reader()
    for given in batches:
        group.lanes[0].append({"0.0": [5]})
        batch = reader.must_open()
        reader.commit(batch, tables=[stage(group, batch, table, how, given)])
    return found(group, table)


def found(group: Group, table: str) -> list[Row]:
    """What is in the table."""
    return [
        tuple(r)
        for r in rows(group.database, f"SELECT k, n, at FROM {quoted(table)} ORDER BY k, n")
    ]


def test_an_older_row_replaces_no_newer_one_if_columns_say_which_is_newer(
    group: Group,
    table: str,
) -> None:
    how = Publication("upsert", ("k",), ("at",))
    assert publish(
        group, table, how,
        [("a", 1, 5), ("b", 1, 5), ("c", 1, 5), ("c", 2, 4)],
        [("a", 2, 4), ("b", 2, 5), ("c", 3, 6), ("c", 4, 5)],
    ) == [("a", 1, 5), ("b", 2, 5), ("c", 3, 6)]  # fmt: skip


def test_an_enumeration_says_by_its_own_order_which_row_is_newer(
    group: Group, table: str, as_owner: Execute
) -> None:
    kind = f'"{table.partition(".")[0]}".state'
    as_owner(
        f"CREATE TYPE {kind} AS ENUM ('placed', 'sent', 'back')",
        f"ALTER TABLE {quoted(table)} ADD state {kind} NOT NULL",
    )
    how = Publication("upsert", ("k",), ("state",))
    reader = group.reader()
    for states in [["placed", "back", "sent"], ["sent", "placed"]]:
        group.lanes[0].append({"0.0": [5]})
        batch = reader.must_open()
        given = [("x", 1, 0, state) for state in states]
        reader.commit(batch, tables=[stage(group, batch, table, how, given)])
        assert rows(group.database, f"SELECT state::text FROM {quoted(table)}") == [("back",)]


def test_rows_replace_the_table_or_those_of_their_key(
    group: Group,
    table: str,
    as_owner: Execute,
) -> None:
    as_owner(f'ALTER TABLE {quoted(table)} DROP CONSTRAINT "Latest_pkey"')
    of_key = Publication("replace", ("k",))
    before = [("a", 1, 0), ("a", 2, 0), ("b", 1, 0)]
    assert publish(group, table, of_key, before, [("a", 3, 0), ("a", 4, 0)], []) == [
        ("a", 3, 0), ("a", 4, 0), ("b", 1, 0),
    ]  # fmt: skip
    whole = Publication("replace")
    assert publish(group, table, whole, [("x", 1, 0)], [("y", 1, 0), ("y", 1, 0)]) == [
        ("y", 1, 0), ("y", 1, 0),
    ]  # fmt: skip
    assert publish(group, table, whole, []) == []


def test_a_function_of_the_owner_is_called_in_the_transaction_of_the_commit(
    group: Group,
    table: str,
    as_owner: Execute,
) -> None:
    schema = table.partition(".")[0]
    name = f'"{schema}".note'
    as_owner(
        f"""CREATE FUNCTION {name}(batch jsonb) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF (batch ->> 'rows')::int > 2 THEN RAISE EXCEPTION 'too many'; END IF;
            UPDATE {quoted(table)} SET n = 100 + n, k = k || ' ' || current_user;
            END $$"""
    )
    how = Publication("insert", call=f"{schema}.note")
    with raises(f"right_missing {schema}.note EXECUTE"):  # that of PUBLIC does not do
        publish(group, table, how, [("a", 1, 0)])
    group.reader().open()
    as_owner(f"GRANT EXECUTE ON FUNCTION {name} TO weir_publisher")
    with raises("bad_rows too many function"):
        publish(group, table, how, [("a", 1, 0), ("b", 1, 0), ("c", 1, 0)])
    assert found(group, table) == []
    assert publish(group, table, how, [("a", 1, 0)]) == [("a weir_publisher", 101, 0)]
    with raises("function_not_found nowhere"):
        publish(group, table, Publication("insert", call=f"{schema}.nowhere"), [])


WRONG = {
    "REVOKE UPDATE ON {t} FROM weir_publisher": (
        UPSERT, "right_missing GRANT UPDATE ON TO weir_publisher"),
    "REVOKE SELECT, DELETE ON {t} FROM weir_publisher": (
        Publication("replace"), "right_missing GRANT SELECT, DELETE ON"),
    "REVOKE USAGE ON SCHEMA {s} FROM weir_publisher; REVOKE INSERT ON {t} FROM weir_publisher": (
        Publication(), "right_missing GRANT USAGE ON SCHEMA GRANT INSERT ON"),
    "ALTER TABLE {t} DROP CONSTRAINT \"Latest_pkey\"": (
        UPSERT, "table_refused k CREATE UNIQUE INDEX ON"),
    "CREATE UNIQUE INDEX ON {t} (k, n)": (
        Publication("upsert", ("k", "n")), "table_refused 'n' SET NOT NULL"),
    "CREATE UNIQUE INDEX ON {t} (at) WHERE n > 0": (
        Publication("upsert", ("at",)), "table_refused at"),
    "SELECT 1": (Publication("upsert", ("kk",)), "column_unknown 'kk'"),
    "SELECT 2": (Publication("upsert"), "output_invalid upsert COLUMN"),
    "SELECT 3": (Publication("insert", ("k",)), "output_invalid key"),
    "SELECT 4": (Publication("replace", newest=("at",)), "output_invalid newest mode=upsert"),
    "SELECT 5": (Publication("merge"), "output_invalid 'merge' insert upsert replace"),
}  # fmt: skip


def test_the_statements_that_mend_it_hold_for_names_in_capitals(
    group: Group, table: str, as_owner: Execute
) -> None:
    schema = table.partition(".")[0]
    as_owner(
        f'ALTER TABLE {quoted(table)} DROP CONSTRAINT "Latest_pkey", ADD "Order" bigint',
        f'CREATE FUNCTION "{schema}"."Note"(batch jsonb) RETURNS void LANGUAGE sql AS \'\'',
    )
    how = Publication("upsert", ("Order",), call=f"{schema}.Note")
    for code in ("table_refused", "table_refused", "right_missing"):
        with pytest.raises(WeirError) as refused:
            group.database.transaction(lambda c: read_table(c, table, how))
        assert refused.value.code == code
        said = refused.value.sentence.partition("run ")[2].removesuffix(".")
        as_owner(*said.split("; "))
    assert group.database.transaction(lambda c: read_table(c, table, how))


@pytest.mark.parametrize("change", WRONG)
def test_what_is_missing_is_said_with_the_statement_that_mends_it(
    group: Group,
    table: str,
    as_owner: Execute,
    change: str,
) -> None:
    schema = quoted(table).partition(".")[0]
    as_owner(*change.replace("{t}", quoted(table)).replace("{s}", schema).split(";"))
    how, says = WRONG[change]
    with raises(says):
        group.database.transaction(lambda c: read_table(c, table, how))


def test_a_key_of_an_enumeration_is_upserted_and_replaced(
    group: Group,
    table: str,
    as_owner: Execute,
) -> None:
    kind = f"{quoted(table).partition('.')[0]}.kind"
    as_owner(
        f"CREATE TYPE {kind} AS ENUM ('a', 'b')",
        f"GRANT USAGE ON TYPE {kind} TO weir_publisher",
        f"ALTER TABLE {quoted(table)} ALTER COLUMN k TYPE {kind} USING k::{kind}",
    )
    assert publish(group, table, UPSERT, [("a", 1, 0), ("b", 1, 0)], [("a", 2, 0)]) == [
        ("a", 2, 0), ("b", 1, 0),
    ]  # fmt: skip
    assert publish(group, table, Publication("replace", ("k",)), [("b", 5, 0)]) == [
        ("a", 2, 0), ("b", 5, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(cases(15)))
def test_the_table_is_what_a_replay_of_all_events_would_make_of_it(
    lane: Lane, table: str, case: int
) -> None:
    """Readers die with rows staged, are taken over, wake up, and commit twice."""
    chance = random_for("replay", case)
    group = Group.made(lane)
    tails: dict[str, int] = {}
    zombies: list[tuple[Any, Batch, StagedTable]] = []

    def events(batch: Batch) -> list[Row]:
        # Events of a key are in one segment, as those of a routing key are.
        return [
            (f"{segment_name(bound.segment_id)} {offset % 3}", offset, 0)
            for bound in batch.bounds
            for offset in range(bound.start, bound.end)
        ]

    for _ in range(12):
        counts = {name: chance.randint(1, 4) for name in ("0.0", "1.0") if chance.random() < 0.7}
        lane.append({name: [5] * count for name, count in counts.items()})
        for name, count in counts.items():
            tails[name] = tails.get(name, 0) + 5 * count
        reader = group.reader(chance.choice("ab"))
        batch = reader.open(chance.choice([5, 100]))
        if batch is None:
            continue
        ready = stage(group, batch, table, UPSERT, events(batch))
        if chance.random() < 0.4:
            zombies.append((reader, batch, ready))
            group.lapse(reader.reader_id)
            continue
        reader.commit(batch, tables=[ready])
        if chance.random() < 0.3:
            reader.commit(batch, tables=[ready])  # its answer was lost
    last = group.reader("last")
    group.lapse("a", "b")
    while (batch := last.open()) is not None:
        last.commit(batch, tables=[stage(group, batch, table, UPSERT, events(batch))])
    for reader, batch, ready in zombies:
        with pytest.raises(Fenced):
            reader.commit(batch, tables=[ready])
    replayed = {f"{name} {o % 3}": o for name, tail in tails.items() for o in range(tail)}
    assert {k: n for k, n, _ in found(group, table)} == replayed
