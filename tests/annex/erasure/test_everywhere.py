"""An erasure reaches every copy that Weir owns, leaves no byte, and is signed when that is true."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg2
import pyarrow.parquet as pq
import pytest

import weir
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.garbage import sweep
from tests.world.streams import at_once, rows, run, unique
from weir.annex.erasure import outputs
from weir.annex.erasure.asked import masked
from weir.annex.erasure.certificate import sign_waiting
from weir.annex.erasure.everywhere import Everywhere, Wanted
from weir.controller.rejected import make_rejected_stream
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import stream_name
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand, perform
from weir.programs.store import StreamStore
from weir.settings import Settings

WHO = "subject-0815"
ASKED: dict[str, Any] = {"reason": "asked", "keys": [WHO], "dry_run": False}


def filled(store: StreamStore, **how: Any) -> str:
    """A stream of three customers, `.rejected` rows of them, and a stream that a group made of it,
    by product. Returns its name."""
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer", segments=2, **how)
    for n in range(3):
        store.append(name, [{"customer": one, "n": n} for one in (WHO, "ann", WHO + "9")])
    made = make_rejected_stream(store.database, stream_name(name))
    store.append(str(made), [
        {"row": json.dumps({"customer": WHO, "n": "x"}), "source": "a.csv"},
        {"row": f"{WHO};x", "source": "a.csv", "text": "x"},
        {"row": json.dumps({"customer": "ann", "n": WHO + "9"}), "source": "a.csv"},
    ])  # fmt: skip
    store.create_stream(f"{name}-by-n", "product")
    store.create_stream(f"{name}-plain", "n")
    store.create_reader_group(name.replace("/", "-"), [name])
    with store.reader(name.replace("/", "-")) as reader:
        for batch in reader:
            found = batch.events.to_pylist()
            of_products = [
                {"product": f"p{one['n']}", "customer": one["customer"]} for one in found
            ]
            batch.write(f"stream:{name}-by-n", of_products)
            batch.write(f"stream:{name}-plain", [{"n": one["n"]} for one in found])
            batch.commit()
    return name


def where_it_is(who: str, settings: Settings, dsn: str) -> list[str]:
    """Every file of the warehouse and every table of the database that has a text, as bytes or in
    a Parquet file's values."""
    found, word = [], re.compile(rb"(?<!\w)" + re.escape(who.encode()) + rb"(?!\w)")
    for path in Path(settings.warehouse).rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data += str(pq.ParquetFile(path).read().to_pydict()).encode()
            if word.search(data):
                found.append(str(path))
    with psycopg2.connect(dsn) as connection:
        cursor = connection.cursor()
        cursor.execute(
            """SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
            WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"""
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT t::text FROM {table} t")
            found += [table for (row,) in cursor if word.search(row.encode())]
    connection.close()
    return found


def test_no_byte_of_it_is_left_and_every_other_event_is(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store)
    run(store.database, """INSERT INTO hot_key (stream_id, key_position, routing_key, share, rate,
        since, seen_at) SELECT stream_id, 0.5, :who, 1, 1, now(), now() FROM stream
        WHERE stream_name = :name""", who=WHO, name=name)  # fmt: skip
    counts = {name: [3, 3], f"{name}-by-n": [3, 1], f"{name}.rejected": [2, 1]}
    said = store.erase(name, "asked", keys=[WHO])
    assert (said["streams"], said["dry_run"]) == (counts, True)
    assert [one["name"] for one in said["remains"] if one["what"] == "stream"] == [f"{name}-plain"]
    assert where_it_is(WHO, settings, test_database.owner_dsn)
    before = store.read(name).to_pylist()
    done = store.erase(name, **ASKED)
    assert (done["events"], done["signed"], done["waits_for"]) == (8, True, [])
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    assert store.read(name).to_pylist() == [one for one in before if one["customer"] != WHO]
    assert store.count(f"{name}-by-n") == 6
    assert store.count(f"{name}.rejected") == 1
    [signed] = rows(store.database, "SELECT * FROM weir.certificates")
    assert (signed.state, signed.events, signed.streams, signed.waits_for) == ("signed", 8, 3, None)
    assert store.erase(name, **ASKED) == done, "what it did, as nothing matches any more"
    assert len(rows(store.database, "SELECT FROM weir.certificates")) == 1


def test_what_was_truncated_is_erased_from_the_files_that_still_have_it(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer")
    store.append(name, [{"customer": WHO}, {"customer": WHO}, {"customer": "ann"}])
    store.append(name, [{"customer": WHO}])
    store.truncate_stream(name, "0.0=1", dry_run=False)
    assert store.erase(name, **ASKED)["events"] == 3
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    assert store.count(name) == 1


def test_a_certificate_is_checked_by_ten_lines_without_weir(
    store: StreamStore, tmp_path: Path
) -> None:
    name = filled(store)
    store.erase(name, **ASKED)
    [row] = rows(store.database, "SELECT certificate FROM weir.certificates")
    [key] = rows(store.database, "SELECT public_key FROM weir.signing_keys")
    page = (Path(__file__).parents[3] / "docs/erasure.md").read_text()
    [program] = re.findall(r"```python[^\n]*\n(# check\.py.*?)```", page, re.DOTALL)
    (tmp_path / "check.py").write_text(program)

    def check(certificate: dict[str, Any], public_key: str, who: str) -> tuple[int, str]:
        (tmp_path / "certificate.json").write_text(json.dumps(certificate))
        ended = subprocess.run(
            [sys.executable, "-I", "check.py", public_key, who], cwd=tmp_path, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        return ended.returncode, ended.stdout.strip()

    assert check(row.certificate, key.public_key, WHO) == (0, "signed, and about this key")
    assert check(row.certificate, key.public_key, "ann") == (0, "signed, and not about this key")
    row.certificate["document"]["erased"][0]["events"] = 7
    assert check(row.certificate, key.public_key, WHO)[0] == 1
    assert WHO not in json.dumps(row.certificate)


def test_it_waits_for_an_open_batch_and_ends_by_itself(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = filled(store)
    store.create_reader_group("slow", [name])
    with store.reader("slow") as reader:
        batch = next(iter(reader))
        done = store.erase(name, **ASKED)
        assert (done["events"], done["signed"]) == (8, False)
        assert done["waits_for"] == ["batch 1 of slow"]
        assert "slow" in {one["name"] for one in done["remains"]}  # for what it writes later
        [waiting] = rows(store.database, "SELECT * FROM weir.certificates")
        assert (waiting.state, waiting.waits_for) == ("waits", ["batch 1 of slow"])
        assert WHO in batch.events["customer"].to_pylist(), "the batch reads what it began with"
        assert sign_waiting(store.database, settings.grace_period) == []
        batch.commit()
    sweep(store.database, settings.warehouse, settings.grace_period)
    assert len(sign_waiting(store.database, settings.grace_period)) == 1
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []


def test_keys_or_a_condition_are_given_and_a_key_of_nobody_erases_nothing(
    store: StreamStore,
) -> None:
    name = filled(store)
    with raises("argument_missing erase"):
        store.erase(name, "asked")
    with raises("argument_missing erase"):
        store.erase(name, "asked", keys=[WHO], condition="n = 1")
    assert store.erase(name, "asked", keys=["nobody"], dry_run=False)["events"] == 0
    assert rows(store.database, "SELECT FROM weir.certificates") == []


def test_a_run_that_is_cleared_returns_its_report_and_its_rows_have_no_key(
    store: StreamStore, settings: Settings
) -> None:
    given = {"stream": filled(store), "reason": "asked", "keys": [WHO], "dry_run": False}

    def ran(run: RunId) -> dict[str, Any]:
        return perform(Job("erase", run, settings, store.database), ACTIONS["erase"], given)

    first = by_hand("erase")
    report = ran(first)
    assert ran(replace(first, try_number=2)) == report
    kept = rows(store.database, "SELECT arguments::text FROM weir.job_runs WHERE job = 'erase'")
    assert len(kept) == 2
    assert not [row for (row,) in kept if WHO in row]


def test_two_erasures_at_once_are_both_done(store: StreamStore) -> None:
    name = filled(store)
    both = at_once(
        lambda: store.erase(name, **ASKED),
        lambda: store.erase(name, "asked", keys=["ann"], dry_run=False),
    )
    assert [one["events"] for one in both] == [8, 7], both
    assert set(store.read(name)["customer"].to_pylist()) == {WHO + "9"}


def test_a_reader_can_neither_erase_nor_sign(
    store: StreamStore, settings: Settings, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    name = filled(store)
    store.erase(name, **ASKED)
    with psycopg2.connect(postgres_server.dsn("postgres", "postgres")) as connection:
        connection.cursor().execute("GRANT weir_reader TO weir_view")
    connection.close()
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    with Database(dsn, patience=60, connect_patience=60) as viewer:
        everything = Everywhere(viewer, settings, Wanted(stream_name(name), ("ann",)))
        assert everything.measure().events == 7
        with raises("database_failed"):
            everything.erase("d/r/t", "me", "asked", lambda _line: None)
        assert len(rows(viewer, "SELECT public_key, made_at FROM weir.signing_keys")) == 1
        with raises("database_failed"):
            rows(viewer, "SELECT private_key FROM weir_internal.signing_key")
    [rights] = rows(
        store.database,
        """SELECT array(SELECT r || ' ' || p FROM unnest(ARRAY['weir_reader', 'weir_team',
            'weir_watcher', 'weir_publisher']) r, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) p
            WHERE has_column_privilege(r, 'weir_internal.signing_key', 'private_key', p)) AS some,
            has_table_privilege('weir_jobs', 'weir_internal.signing_key', 'UPDATE') AS changes""",
    )
    assert (rights.some, rights.changes) == ([], False)
    assert store.count(name) == 6


def test_a_copy_of_an_installation_erases_from_no_output_of_the_original(
    store: StreamStore, settings: Settings, tmp_path: Path
) -> None:
    name, group = f"shop/{unique('orders')}", unique("writers")
    store.create_stream(name, "customer")
    store.append(name, [{"customer": one} for one in (WHO, "ann")])
    store.create_reader_group(group, [name])
    with store.reader(group) as reader:
        for batch in reader:
            batch.write("parquet:copied", batch.events.select(["customer"]))
            batch.commit()
    with weir.open(settings=replace(settings, output_roots=(str(tmp_path / "copy"),))) as copy:
        done = copy.erase(name, **ASKED)
    assert done["outputs"] == {}
    [left] = [one for one in done["remains"] if one["name"] == f"copied of {group}"]
    assert "not below output_roots" in left["why"]
    [file] = Path(settings.output_roots[0]).rglob(f"copied/group={group}/**/*.parquet")
    assert pq.ParquetFile(file).read().column("customer").to_pylist() == [WHO, "ann"]


def test_rows_of_parquet_outputs_and_of_tables_go_too(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE TABLE public.people (n bigint, customer text);
            CREATE TABLE public.numbers (n bigint);
            CREATE TABLE public.watched (n bigint, customer text);
            CREATE TABLE public.ruled (n bigint, customer text);
            CREATE FUNCTION public.after() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN RETURN NULL; END';
            CREATE CONSTRAINT TRIGGER later AFTER DELETE ON public.watched
                INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.after();
            CREATE RULE also AS ON DELETE TO public.ruled DO ALSO SELECT 1;
            GRANT SELECT, INSERT, DELETE ON public.people, public.numbers, public.watched,
                public.ruled TO weir_publisher"""
        )
    connection.close()
    name = f"shop/{unique('orders')}"
    store.create_stream(name, "customer", segments=2)
    for n in range(2):
        store.append(name, [{"customer": one, "n": n} for one in (WHO, "ann", WHO + "9")])
    store.create_reader_group("writers", [name])
    written = ("parquet:plain", "parquet:parts partition_by=customer", "table:public.people",
               "table:public.watched", "table:public.ruled")  # fmt: skip
    numbers = ("parquet:numbers", "table:public.numbers")
    with store.reader("writers") as reader:
        for batch in reader:
            for output in written:
                batch.write(output, batch.events.select(["n", "customer"]))
            for output in numbers:
                batch.write(output, batch.events.select(["n"]))
            batch.commit()
    made = rows(
        store.database,
        """SELECT t.* FROM reader_group g
        CROSS JOIN LATERAL things_of(true, g.group_id, 1) t WHERE g.name = 'writers'""",
    )
    assert {"public.people", "public.numbers"} <= {value for row in made for value in row}
    measured = store.erase(name, "asked", keys=[WHO])
    gone = {"plain of writers": 2, "parts of writers": 2, "table public.people": 2}
    assert measured["outputs"] == {**gone, "numbers of writers": 0}
    done = store.erase(name, **ASKED)
    assert (done["signed"], done["outputs"]) == (True, gone)
    left = {(one["what"], one["name"]): one["why"] for one in done["remains"]}
    assert ("Parquet output", "numbers of writers") in left
    for table, why in (("numbers", "no column"), ("watched", "triggers"), ("ruled", "triggers")):
        assert why in left["table", f"public.{table}"]
    assert not [one for one in left if "people" in one[1] or "plain" in one[1]]
    roots = [Path(root) for root in settings.output_roots]
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    names = re.compile(rf"customer={WHO}(/|$)")
    assert not [path for path in files if names.search(str(path.parent))]
    kept = [
        row for path in files if path.suffix == ".parquet" and "plain" in str(path)
        for row in pq.ParquetFile(path).read().to_pylist()
    ]  # fmt: skip
    assert sorted(row["customer"] for row in kept) == sorted(2 * ["ann", WHO + "9"])
    with psycopg2.connect(test_database.owner_dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT customer FROM public.people ORDER BY customer")
        assert cursor.fetchall() == [("ann",), ("ann",), (WHO + "9",), (WHO + "9",)]
    connection.close()
    assert set(where_it_is(WHO, settings, test_database.owner_dsn)) == {
        "public.watched", "public.ruled"
    }  # fmt: skip
    again = store.erase(name, **ASKED)
    assert (again["events"], again["outputs"]) == (2, gone)
    next(
        path for path in files if "numbers" in str(path) and path.suffix == ".parquet"
    ).write_bytes(b"damaged")
    with raises("output_not_writable numbers writers run"):
        store.erase(name, "asked", keys=["ann"])


def test_erasures_at_once_bring_back_no_row_of_an_output(
    store: StreamStore, settings: Settings
) -> None:
    store.create_stream("shop/orders", "customer")
    names = [f"c{n}" for n in range(6)]
    store.append("shop/orders", [{"customer": one} for one in names])
    store.create_reader_group("writers", ["shop/orders"])
    with store.reader("writers") as reader:
        for batch in reader:
            batch.write("parquet:plain", batch.events.select(["customer"]))
            batch.commit()
    looking = outputs._rows

    def slowly(*given: Any) -> Any:
        found = looking(*given)
        time.sleep(0.3)
        return found

    [made] = rows(store.database, "SELECT * FROM parquet_output")
    one = outputs.Written("writers", "plain", made.root, (made.path,), frozenset({"customer"}))
    erase = partial(outputs.erase_output, store.database, one, request_id="nobody's")
    with patch.object(outputs, "_rows", slowly):
        done = at_once(*(partial(erase, keys=[gone]) for gone in names[:3]))
    assert [seen.rows for seen in done] == [1, 1, 1], done
    root = made.root
    kept = [
        row["customer"] for path in Path(root).rglob("*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]  # fmt: skip
    assert sorted(kept) == names[3:]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("who = 'w2' AND n > 2", "who = ? AND n > ?"),
        (
            "`b c` IN ('it''s', \"x\", -1.5e3) AND at > date '2020-01-01'",
            "`b c` IN (?, ?, ?) AND at > date ?",
        ),
        # Of what is no condition any more, nobody knows what is a value.
        (r"a = r'x\' or `b c` = 'secret'", "? or ?"),
        ("a = 'it\\'s' /* ann */ or b in (\"x\") -- bob", "? or ? in ?"),
        ("length(a || 'secret') = 7 AND a = 'Rome'", "? AND ?"),
    ],
)
def test_no_value_of_a_condition_is_recorded(condition: str, kept: str) -> None:
    assert masked(condition) == kept
