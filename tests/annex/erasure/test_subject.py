"""An erasure finds copies by the column that a reader group declares. One that was interrupted is
continued by whoever asks for the same again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg2

from tests.annex.erasure.test_everywhere import ASKED, WHO, where_it_is
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.streams import rows, run, unique
from weir.programs.store import StreamStore
from weir.settings import Settings


def copied(
    store: StreamStore,
    group: str,
    stream: str,
    outputs: Mapping[str, Mapping[str, str]],
    **how: Any,
) -> None:
    """A new group writes the columns of a stream, by other names, to outputs."""
    store.create_reader_group(group, [stream], **how)
    with store.reader(group) as reader:
        for batch in reader:
            found = batch.events.to_pylist()
            for output, names in outputs.items():
                made = [{new: one[old] for new, old in names.items()} for one in found]
                batch.write(output, made)
            batch.commit()


def test_what_a_group_made_is_searched_by_the_subject_that_it_declares(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE TABLE public.clients (client text, friend text);
            GRANT SELECT, INSERT, DELETE ON public.clients TO weir_publisher"""
        )
    connection.close()
    name = f"shop/{unique('orders')}"
    for stream, key in ((name, "customer"), (f"{name}-2", "product"), (f"{name}-3", "client")):
        store.create_stream(stream, key)
    store.append(name, [{"customer": who, "n": f"p{n}"} for n, who in enumerate((WHO, "ann"))])
    client = {"client": "customer", "product": "n"}
    copied(
        store, "first", name,
        {f"stream:{name}-2": client, "parquet:clients": client,
         "table:public.clients": {"client": "customer", "friend": "n"}},
    )  # fmt: skip
    person = {"person": "client", "client": "product"}
    copied(store, "second", f"{name}-2", {f"stream:{name}-3": person})
    found = store.erase(name, "asked", keys=[WHO])
    assert found["streams"] == {name: [1, 1]}
    left = {one["name"]: one["why"] for one in found["remains"]}
    assert "it has no column customer" in left[f"{name}-2"]
    store.update_reader_group("first", subject="client")
    store.update_reader_group("second", subject="person")
    [known] = rows(
        store.database, "SELECT subject FROM weir.reader_groups WHERE reader_group = 'second'"
    )
    assert known.subject == "person"
    done = store.erase(name, **ASKED)
    assert done["streams"] == {name: 1, f"{name}-2": 1, f"{name}-3": 1}
    assert done["outputs"] == {"clients of first": 1, "table public.clients": 1}
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    assert [store.count(f"{name}{end}") for end in ("", "-2", "-3")] == [1, 1, 1]
    [signed] = rows(
        store.database, "SELECT certificate -> 'document' AS said FROM weir.certificates"
    )
    by = {one["stream"]: (one["by"], *one["columns"]) for one in signed.said["searched"]}
    assert by[f"{name}-3"] == ("column", "person")
    assert by[name] == ("routing key", "customer")


def test_a_store_of_a_copy_is_not_searched_by_the_key_of_the_copy(store: StreamStore) -> None:
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer")
    store.create_stream(f"{name}-2", "product")
    store.append(name, [{"customer": "17", "n": "4"}])
    names = {"customer": "customer", "product": "n"}
    copied(store, "first", name, {f"stream:{name}-2": names})
    of_products, of_customers = (f"shop/{unique(what)}" for what in ("products", "customers"))
    store.define_adjunct_store(of_products, f"{name}-2")
    store.define_adjunct_store(of_customers, f"{name}-2", key="customer")
    found = store.erase(name, "asked", keys=["17"])
    assert found["stores"] == {of_customers: 0}
    assert of_products in {one["name"] for one in found["remains"]}


def test_what_two_groups_wrote_to_one_stream_is_searched_by_the_subjects_of_both(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer")
    store.create_stream(f"{name}-2", "n")
    store.append(name, [{"customer": who, "n": n} for n, who in enumerate((WHO, "ann"))])
    copied(store, "first", name, {f"stream:{name}-2": {"buyer": "customer", "n": "n"}},
           subject="Buyer")  # fmt: skip
    copied(store, "second", name, {f"stream:{name}-2": {"payer": "customer", "n": "n"}},
           subject="payer")  # fmt: skip
    assert store.erase(name, **ASKED)["streams"] == {name: 1, f"{name}-2": 2}
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    assert store.count(f"{name}-2") == 2


def test_what_a_program_of_a_group_wrote_and_the_files_that_were_appended_are_listed_as_left(
    store: StreamStore,
) -> None:
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer")
    store.append(name, [{"customer": WHO}])
    run(store.database, """INSERT INTO transaction_input
        (stream_id, path, transaction_number, bytes)
        SELECT stream_id, 'a.csv', transaction_number, 1 FROM transaction
        WHERE stream_name = :name""", name=name)  # fmt: skip
    store.create_reader_group("program", [name])
    store.create_reader_group("copies", [name])
    store.create_reader_group("idle", [name])
    for group in ("program", "copies"):
        with store.reader(group) as reader:
            for batch in reader:
                if group == "copies":
                    batch.write("parquet:copies", batch.events.select(["customer"]))
                batch.commit()
    left = store.erase(name, "asked", keys=[WHO])["remains"]
    assert [one["name"] for one in left if one["what"] == "what reader group"] == ["program"]
    [files] = [one for one in left if one["what"] == "input files"]
    assert (files["name"], files["why"].split(";")[0]) == (
        f"of {name}", "1 file below the input roots, such as a.csv",
    )  # fmt: skip


def test_whoever_asks_for_the_same_again_continues_a_request_that_was_interrupted(
    store: StreamStore,
) -> None:
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer")
    store.append(name, [{"customer": who, "n": n} for n, who in enumerate((WHO, "ann", "bob"))])
    store.create_reader_group("writers", [name])
    with store.reader("writers") as reader:
        for batch in reader:
            batch.write("parquet:plain", batch.events.select(["customer"]))
            batch.commit()
    root = Path(rows(store.database, "SELECT root FROM parquet_output")[0].root)
    [file] = [path for path in root.rglob("*.parquet") if path.is_file()]
    whole = file.read_bytes()
    file.write_bytes(b"damaged")
    with raises("output_not_writable without"):
        store.erase(name, **ASKED)
    file.write_bytes(whole)
    states = "SELECT request, state, events, reason FROM weir.certificates ORDER BY asked_at"
    [begun] = rows(store.database, states)
    assert (begun.state, begun.events) == ("not finished", 1)
    store.erase(name, "another reason", keys=[WHO], dry_run=False)
    whole = file.read_bytes()
    file.write_bytes(b"damaged")
    with raises("output_not_writable without"):
        store.erase(name, "asked", keys=["ann"], dry_run=False)
    file.write_bytes(whole)
    done = store.erase(name, **ASKED)
    assert (done["events"], done["outputs"], done["signed"]) == (1, {}, True)
    assert [(r.request == begun.request, r.state) for r in rows(store.database, states)] == [
        (True, "signed"), (False, "signed"), (False, "not finished"),
    ]  # fmt: skip
