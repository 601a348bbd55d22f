"""An erasure finds keys under the names that their column has had, in copies of any age, and in
columns that were dropped."""

from pathlib import Path

import psycopg2
import pyarrow.parquet as pq

from tests.annex.erasure.test_everywhere import ASKED, WHO, where_it_is
from tests.annex.erasure.test_subject import copied
from tests.conftest import TestDatabase
from tests.world.streams import rows
from weir.programs.store import StreamStore
from weir.settings import Settings


def where_it_is_not_an_input(settings: Settings, test_database: TestDatabase) -> list[str]:
    """Every place that has the key, in the warehouse, the output roots and the database."""
    found = where_it_is(WHO, settings, test_database.owner_dsn)
    for root in settings.output_roots:
        found += where_it_is_in(Path(root))
    return found


def where_it_is_in(root: Path) -> list[str]:
    """Every file, and every folder, below a root that has the key, or is named by it."""
    found = [str(path) for path in root.rglob("*") if WHO in path.name]
    files = [path for path in root.rglob("*.parquet") if path.is_file()]
    return found + [
        str(path) for path in files if WHO in str(pq.ParquetFile(path).read().to_pydict())
    ]


def renamed(store: StreamStore) -> None:
    """A stream of which copies of all kinds were made before its routing key got another name."""
    store.create_stream("shop/orders", "key")
    for copy, key in (("shop/copy", "n"), ("shop/keyed", "key")):
        store.create_stream(copy, key)
    store.append("shop/orders", [{"key": who, "n": n} for n, who in enumerate((WHO, "ann"))])
    both = {"key": "key", "n": "n"}
    copied(
        store, "before", "shop/orders",
        {"stream:shop/copy": both, "stream:shop/keyed": both, "parquet:plain": both,
         "parquet:parts partition_by=key": both, "table:public.people": both},
    )  # fmt: skip
    copied(store, "of-copies", "shop/copy", {"parquet:far": both})
    store.update_stream("shop/orders", rename_columns=["key -> cust"], allow_named=True)


def table(test_database: TestDatabase) -> None:
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE TABLE public.people (key text, n bigint);
            GRANT SELECT, INSERT, DELETE ON public.people TO weir_publisher"""
        )
    connection.close()


def test_copies_from_before_a_rename_are_erased(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    table(test_database)
    renamed(store)
    assert rows(store.database, "SELECT routing_key FROM weir.streams WHERE stream = 'shop/orders'"
                )[0].routing_key == "cust"  # fmt: skip
    store.append("shop/orders", [{"cust": WHO, "n": 7}])
    done = store.erase("shop/orders", **ASKED)
    assert done["streams"] == {"shop/orders": 2, "shop/copy": 1, "shop/keyed": 1}
    assert set(done["outputs"]) == {
        "plain of before", "parts of before", "table public.people", "far of of-copies"
    }  # fmt: skip
    assert done["signed"]
    assert where_it_is_not_an_input(settings, test_database) == []
    assert store.read("shop/copy")["key"].to_pylist() == ["ann"]


def test_a_copy_that_is_renamed_itself_and_one_that_dropped_the_column_are_erased(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    table(test_database)
    renamed(store)
    store.update_stream("shop/keyed", rename_columns=["key -> who"], allow_named=True)
    copied(store, "later", "shop/keyed", {"parquet:later": {"who": "who"}})
    store.update_stream("shop/copy", drop_columns=["key"], allow_named=True)
    done = store.erase("shop/orders", **ASKED)
    assert done["streams"] == {"shop/orders": 1, "shop/copy": 1, "shop/keyed": 1}
    assert where_it_is_not_an_input(settings, test_database) == []


def test_a_copy_with_another_column_under_the_new_name_is_searched_by_both_and_says_so(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    store.create_stream("shop/orders", "key")
    store.create_stream("shop/copy", "n")
    store.append("shop/orders", [{"key": who, "n": n} for n, who in enumerate((WHO, "ann"))])
    names = {"key": "key", "cust": "n", "n": "n"}
    copied(store, "before", "shop/orders", {"stream:shop/copy": names, "parquet:old": names})
    store.update_stream("shop/orders", rename_columns=["key -> cust"], allow_named=True)
    said = store.erase("shop/orders", "asked", keys=[WHO])
    listed = {one["name"] for one in said["remains"] if one["what"] == "columns"}
    assert listed == {"cust, key of stream shop/copy", "cust, key of output old of before"}
    assert store.erase("shop/orders", **ASKED)["streams"]["shop/copy"] == 1
    assert where_it_is_not_an_input(settings, test_database) == []
    store.update_reader_group("before", subject="key")
    said = store.erase("shop/orders", "asked", keys=["ann"])
    assert not [one for one in said["remains"] if one["what"] == "columns"]
    assert said["streams"]["shop/copy"] == [1, 1]


def test_the_name_of_a_column_that_is_another_one_now_erases_nothing_of_it(
    store: StreamStore,
) -> None:
    store.create_stream("shop/orders", "key")
    store.append("shop/orders", [{"key": "17", "n": "4"}, {"key": "4", "n": "17"}])
    store.update_stream("shop/orders", rename_columns=["key -> n", "n -> key"], allow_named=True)
    done = store.erase("shop/orders", "asked", keys=["17"], dry_run=False)
    assert done["events"] == 1
    assert store.read("shop/orders").select(["n", "key"]).to_pylist() == [{"n": "4", "key": "17"}]
