"""What a small batch costs does not grow: its statements, transactions and tables of its own."""

from typing import Any

import pyarrow.compute as pc
import pytest
from sqlalchemy import event, text

import weir
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.watching import count_statements


def append(store: weir.StreamStore, *numbers: int) -> None:
    store.append("s/in", [{"k": f"key {n % 7}", "n": n} for n in numbers])


def found(store: weir.StreamStore, sql: str) -> list[Any]:
    return list(store.database.transaction(lambda c: c.execute(text(sql)).all()))


def staging_tables(store: weir.StreamStore) -> list[Any]:
    return found(
        store,
        """SELECT oid, relname FROM pg_class WHERE relkind = 'r'
        AND relnamespace = 'weir_staging'::regnamespace ORDER BY relname""",
    )


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("output", "statements", "transactions"),
    [("table:public.results", 13, 4), ("stream:s/out", 16, 4)],
)
def test_a_batch_takes_few_statements_and_four_transactions(
    store: weir.StreamStore, output: str, statements: int, transactions: int
) -> None:
    for n in range(4):
        append(store, *range(n * 10, n * 10 + 10))
    sent = count_statements(store.database)
    committed: list[None] = []
    event.listen(store.database.engine, "commit", lambda _: committed.append(None))
    counts = []
    for batch in store.reader("g", batch_events=10):
        batch.commit({output: batch.events})
        counts.append((len(sent), len(committed)))
        sent.clear()
        committed.clear()
    assert counts[1:] == [(statements, transactions)] * 3, "the first looks at more"


@pytest.mark.usefixtures("results")
def test_the_batches_of_a_reader_use_one_staging_table(store: weir.StreamStore) -> None:
    for n in range(3):
        append(store, *range(n * 10, n * 10 + 10))
    tables = []
    for batch in store.reader("g", batch_events=10):
        batch.commit({"table:public.results": batch.events})
        tables += staging_tables(store)
    assert len(tables) == 3
    assert len(set(tables)) == 1
    assert found(store, "SELECT n FROM public.results ORDER BY n") == [(n,) for n in range(30)]
    assert staging_tables(store) == [], "the reader drops it when it leaves"


@pytest.mark.usefixtures("results")
def test_a_staging_table_that_has_grown_is_replaced(store: weir.StreamStore) -> None:
    for n in range(6):
        append(store, *range(n * 8000, (n + 1) * 8000))
    sizes = []
    for batch in store.reader("g", batch_events=8000):
        batch.commit({"table:public.results": batch.events})
        (table,) = staging_tables(store)
        sizes += found(store, f"SELECT pg_relation_size('weir_staging.{table.relname}')")[0]
    assert 0 < max(sizes) < 2_000_000
    assert 0 in sizes[1:]
    assert found(store, "SELECT count(*) FROM public.results") == [(48_000,)]


@pytest.mark.usefixtures("results")
def test_each_batch_may_have_other_columns_and_the_table_may_get_more(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    for n in range(4):
        append(store, n)
    output = "table:public.results"
    with store.reader("g", batch_events=1) as reader:
        batch = next(reader)
        batch.commit({output: batch.events})
        batch = next(reader)
        batch.commit({output: batch.events.select(["n"])})
        batch = next(reader)
        more = batch.events.append_column("twice", pc.multiply(batch.events["n"], 2))
        with raises("column_unknown"):
            batch.write(output, more)
        execute(test_database.owner_dsn, "ALTER TABLE public.results ADD COLUMN twice bigint")
        batch.commit({output: more})
        batch = next(reader)
        batch.commit({output: batch.events})
    rows = [tuple(row) for row in found(store, "SELECT k, n, twice FROM public.results ORDER BY n")]
    assert rows == [("key 0", 0, None), (None, 1, None), ("key 2", 2, 4), ("key 3", 3, None)]


@pytest.mark.usefixtures("results")
def test_a_column_that_is_changed_between_two_batches_fails_one_attempt(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    append(store, 1)
    append(store, 2)
    output = "table:public.results"
    with raises("table_changed column 'n'"), store.reader("g", batch_events=1) as reader:
        batch = next(reader)
        batch.commit({output: batch.events})
        execute(
            test_database.owner_dsn, "ALTER TABLE public.results ALTER COLUMN n TYPE numeric(9, 2)"
        )
        batch = next(reader)
        batch.commit({output: batch.events})
    assert staging_tables(store) == []
    for batch in store.reader("g"):
        assert (batch.batch_id, batch.attempt) == (2, 2)
        batch.commit({output: batch.events})
    assert found(store, "SELECT n FROM public.results ORDER BY n") == [(1,), (2,)]


@pytest.mark.usefixtures("results")
def test_a_right_that_is_taken_between_two_batches_is_named_with_the_schema(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    append(store, 1)
    append(store, 2)
    with raises("right_missing ON TABLE public.results TO weir_publisher"):
        for batch in store.reader("g", batch_events=1):
            batch.commit({"table:public.results": batch.events})
            execute(test_database.owner_dsn, "REVOKE ALL ON public.results FROM weir_publisher")
