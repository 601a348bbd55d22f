"""An erasure finds copies whoever made them, however they spell a key, and leaves no sample."""

import json
from decimal import Decimal
from pathlib import Path

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq

from tests.annex.erasure.test_everywhere import ASKED, WHO, filled, where_it_is
from tests.annex.erasure.test_subject import copied
from tests.conftest import TestDatabase
from tests.world.adjunct import Store
from tests.world.columns import column
from tests.world.streams import Lane, run
from weir.controller.rejected import make_rejected_stream
from weir.model.key_space import routing_steps
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.queries.adjunct.versions import AdjunctFile
from weir.settings import Settings


def test_copies_are_found_when_their_group_reads_others_and_when_it_is_deleted(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store)
    group = name.replace("/", "-")
    store.create_stream("shop/other", "customer")
    store.update_reader_group(group, streams=["shop/other"])
    counts = {name: [3, 3], f"{name}-by-n": [3, 1], f"{name}.rejected": [2, 1]}
    assert store.erase(name, "asked", keys=[WHO])["streams"] == counts
    store.delete_reader_group(group)
    store.create_stream("shop/third", "customer")
    store.create_reader_group(group, ["shop/third"])  # another one of the same name
    done = store.erase(name, **ASKED)
    assert (done["events"], done["signed"]) == (8, True)
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    left = {(one["what"], one["name"]) for one in done["remains"]}
    assert {(*one,) for one in done["remains"]} == {("what", "name", "why", "until")}
    assert ("stream", f"{name}-plain") in left
    assert ("Parquet outputs and tables", f"of reader group {group}") in left
    assert store.erase("shop/third", "asked", keys=["ann"])["streams"] == {"shop/third": [0, 0]}


def test_rejected_rows_are_found_however_they_spell_a_key(store: StreamStore) -> None:
    store.create_stream("shop/orders", "customer")
    who = 'M\u00fcller "x"'
    made = make_rejected_stream(store.database, stream_name("shop/orders"))
    theirs = (
        json.dumps({"customer": who}), json.dumps({"CUSTOMER": who}, ensure_ascii=False),
        '"M\u00fcller ""x""",17', '{"customer": "M\\u00fcller \\"x\\"", "n": ',
        json.dumps({"row": {"customer": who}}),
    )  # fmt: skip
    others = (
        json.dumps({"customer": "M\u00fcller"}),
        "M\u00fcller x",
        json.dumps({"customer": True}),
    )
    store.append(str(made), [{"row": row, "source": "a"} for row in (*theirs, *others)])
    assert store.erase("shop/orders", "asked", keys=[who], dry_run=False)["events"] == len(theirs)
    assert store.read(str(made))["row"].to_pylist() == list(others)
    assert store.erase("shop/orders", "asked", keys=["true"], dry_run=False)["events"] == 1


def test_a_number_is_found_in_copies_whose_columns_are_decimals(
    store: StreamStore, test_database: TestDatabase
) -> None:
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE TABLE public.numbers (k text, n numeric(12,2));
            GRANT SELECT, INSERT, DELETE ON public.numbers TO weir_publisher"""
        )
    connection.close()
    store.create_stream("shop/orders", "n")
    store.create_stream("shop/copy", "k", on_missing_key="quarantine")
    store.append("shop/orders", [{"n": n, "k": "x"} for n in (7, 70)])
    both = {"k": "k", "n": "n"}
    copied(store, "before", "shop/orders", {"stream:shop/copy": both, "table:public.numbers": both})
    store.append("shop/copy", [{"k": "x", "n": 1}, {"n": 7}])
    store.update_stream("shop/copy", widen_columns="n DECIMAL(22,2)", allow_named=True)
    store.append("shop/copy", [{"k": "x", "n": 1}, {"n": 7}, {"n": 70}])
    found = {"shop/orders": 1, "shop/copy": 1, "shop/copy.rejected": 2}
    done = store.erase("shop/orders", **{**ASKED, "keys": ["7"]})
    assert (done["streams"], done["outputs"]) == (found, {"table public.numbers": 1})
    assert store.read("shop/copy")["n"].to_pylist() == [70, 1, 1]
    assert store.read("shop/copy.rejected")["row"].to_pylist() == ['{"k":null,"n":70.00}']


def test_texts_that_are_equal_numbers_are_other_keys_where_a_copy_tells_them_apart(
    store: StreamStore, test_database: TestDatabase
) -> None:
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE TABLE public.plain (n numeric);
            CREATE TABLE public.whole (n bigint);
            CREATE TABLE public.real (n double precision);
            GRANT SELECT, INSERT, DELETE ON public.plain, public.whole, public.real
            TO weir_publisher"""
        )
    connection.close()
    store.create_stream("shop/orders", "n")
    make_rejected_stream(store.database, stream_name("shop/orders"))
    store.append("shop/orders", [{"n": n, "k": "x"} for n in ("7", "7.0", "007", "-0")])
    kinds = {"plain": pa.decimal128(12, 2), "whole": pa.int64(), "real": pa.float64()}
    store.create_reader_group("plain", ["shop/orders"])
    with store.reader("plain") as reader:
        for batch in reader:
            batch.write("parquet:parts partition_by=n", batch.events)
            numbers = pa.array([Decimal(one) for one in batch.events["n"].to_pylist()])
            for table, kind in kinds.items():
                made = numbers.cast(pa.decimal128(12, 2)).cast(kind)
                batch.write(f"table:public.{table}", pa.table({"n": made}))
            batch.commit()
    rejected = [{"source": "a", "row": json.dumps({"n": n})} for n in (7, 7.0, "7.0")]
    store.append("shop/orders.rejected", rejected)

    def found(key: str) -> tuple[int, ...]:
        said = store.erase("shop/orders", "asked", keys=[key])
        outputs = ("parts of plain", *(f"table public.{one}" for one in kinds))
        rejected = said["streams"]["shop/orders.rejected"]
        assert isinstance(rejected, list)  # of a dry run: events, and files
        return rejected[0], *(said["outputs"][one] for one in outputs)

    assert found("7.0") == (2, 1, 3, 3, 3), "a number has no zeros of its own"
    assert found("007") == (0, 1, 3, 3, 3)
    assert found("-0") == (0, 1, 1, 1, 1)


def test_a_number_is_found_whatever_zeros_it_is_written_with(store: StreamStore) -> None:
    store.create_stream("shop/orders", "n")
    make_rejected_stream(store.database, stream_name("shop/orders"))
    store.append("shop/orders", [{"n": n} for n in (0, 7, 70)])
    texts = ("7", "7.00", "7e0", '"7.0"', "70", "-0", "0.0", "1e999999999999", "null")
    rejected = [{"source": "a", "row": f'{{"n":{one}}}'} for one in texts]
    store.append("shop/orders.rejected", rejected)
    done = store.erase("shop/orders", **{**ASKED, "keys": ["7"]})
    assert done["streams"] == {"shop/orders": 1, "shop/orders.rejected": 4}
    done = store.erase("shop/orders", **{**ASKED, "keys": ["0"]})
    assert done["streams"] == {"shop/orders": 1, "shop/orders.rejected": 2}


def test_a_number_is_found_in_an_adjunct_store_whose_keys_are_decimals(
    store: StreamStore, settings: Settings
) -> None:
    store.create_stream("shop/orders", "n")
    store.create_stream("shop/copy", "k")
    store.append("shop/orders", [{"n": n, "k": "x"} for n in (7, 70)])
    copied(store, "before", "shop/orders", {"stream:shop/copy": {"k": "k", "n": "n"}})
    store.update_stream("shop/copy", widen_columns="n DECIMAL(22,2)", allow_named=True)
    store.define_adjunct_store("shop/by-n", "shop/copy", key="n", history="7 d")
    made = Store(store.database, "shop/by-n", Lane(store.database, stream_name("shop/copy"), 0))
    for _ in range(2):  # an older version, too
        store.append("shop/copy", [{"k": "x", "n": 1}])
        build, files = made.begun(), list[AdjunctFile]()
        for part, numbers in (("table", ["7.00", "70.00"]), ("history", ["7.00"])):
            hashes = [routing_steps(one.encode()) for one in numbers]
            keys = pa.array(map(Decimal, numbers), pa.decimal128(22, 2))
            file = Path(settings.warehouse, path := f"{build.folder}{part}/part.parquet")
            file.parent.mkdir(parents=True)
            pq.write_table(pa.table({"_weir_key": keys, "_weir_hash": hashes}), file)
            size = file.stat().st_size
            files.append(AdjunctFile(path, len(numbers), size, min(hashes), max(hashes)))
        fields = [column("_weir_key", "decimal(22,2)")]
        made.publish(build, fields=fields, files=files[:1], history=files[1:])
    done = store.erase("shop/orders", **{**ASKED, "keys": ["7"]})
    assert done["stores"] == {"shop/by-n": 4}
    left = made.rows("SELECT path FROM adjunct_file WHERE store_id = :a")
    found = [pq.read_table(Path(settings.warehouse, one.path))["_weir_key"] for one in left]
    assert [one.to_pylist() for one in found] == [[70], [70]]
    made.update(key="k")
    # As an expiry leaves a version of which only the changes are kept.
    run(
        store.database,
        """UPDATE adjunct_version SET state = 'expired', ended_at = now(),
        history_from = 1""",
    )
    done = store.erase("shop/orders", **{**ASKED, "keys": ["70"]})
    assert done["stores"] == {"shop/by-n": 2}


def test_a_key_is_meant_with_its_blanks(store: StreamStore) -> None:
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", [{"customer": one} for one in (" C1", "C1 ", "C1")])
    assert store.erase("shop/orders", "asked", keys=[" C1", ""], dry_run=False)["events"] == 1
    assert store.read("shop/orders")["customer"].to_pylist() == ["C1 ", "C1"]


def test_postgres_keeps_no_sample_of_keys_among_its_statistics(
    store: StreamStore, test_database: TestDatabase
) -> None:
    name = filled(store)
    run(store.database, """INSERT INTO hot_key (stream_id, key_position, routing_key, share, rate,
        since, seen_at) SELECT stream_id, n / 4.0, :who, 1, 1, now(), now()
        FROM stream, generate_series(1, 3) n
        WHERE stream_name = :name""", who=WHO, name=name)  # fmt: skip
    run(store.database, """UPDATE job_run SET report = jsonb_build_object('hot_keys', :who),
        arguments = jsonb_build_object('keys', :who), error = :who,
        progress = :who""", who=WHO)  # fmt: skip
    with psycopg2.connect(test_database.owner_dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("ANALYZE")
        cursor.execute(
            "SELECT tablename, attname FROM pg_stats s WHERE s::text LIKE %s", (f"%{WHO}%",)
        )
        assert cursor.fetchall() == []
    connection.close()


def test_a_store_or_output_of_a_copy_is_searched_by_the_column_that_has_the_keys_or_listed(
    store: StreamStore,
) -> None:
    name = filled(store)
    stores = {"by-product": f"{name}-by-n", "by-customer": name, "plain": f"{name}-plain"}
    for one, stream in stores.items():
        store.define_adjunct_store(f"shop/{one}", stream)
    store.create_reader_group("plain", [f"{name}-plain"])
    with store.reader("plain") as reader:
        for batch in reader:
            batch.write("parquet:plain", batch.events.select(["n"]))
            batch.commit()
    said = store.erase(name, "asked", keys=[WHO])
    assert set(said["stores"]) == {"shop/by-customer"}, "a product is no customer"
    left = {one["name"] for one in said["remains"]}
    assert {"shop/by-product", "shop/plain", "plain of plain"} <= left


def test_a_routing_key_in_another_case_than_its_column_is_found(store: StreamStore) -> None:
    store.create_stream("shop/orders", "Customer")
    store.append("shop/orders", [{"customer": WHO}, {"customer": "ann"}])
    assert store.erase("shop/orders", "asked", keys=[WHO], dry_run=False)["events"] == 1
