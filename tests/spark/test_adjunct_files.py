"""Versions share what no change touches, and keep each key in one file, however they are built."""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from pyspark.errors import PythonException

from tests.raises import raises
from tests.spark.adjunct_world import WAYS, Store, Way, World
from tests.spark.installation import Installation
from weir.adjunct.builds import stores_to_build
from weir.adjunct.lookup import look_up
from weir.adjunct.stores import update_store
from weir.adjunct.versions import AdjunctVersion
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import stream_name
from weir.spark import adjunct_writer
from weir.spark.adjunct_build import build_stores, with_other_code
from weir.spark.adjunct_check import check_definition
from weir.spark.adjunct_diff import diff_versions

pytestmark = pytest.mark.drawn(2)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjunct_writer, "ROWS_PER_FILE", 20)
    monkeypatch.setattr(adjunct_writer, "MOST_SMALL_FILES", -2)


def paths(version: AdjunctVersion) -> set[str]:
    return {file.path for file in version.files}


def filled(weir: Installation, way: Way, keys: int = 80, **options: Any) -> tuple[Store, Any]:
    world = World.made(weir)
    world.append([(f"key {i}", i, "u") for i in range(keys)])
    store = world.store(way, **options)
    return store, store.build()


def test_a_change_rewrites_the_files_of_its_keys_and_shares_the_others(weir: Installation) -> None:
    store, first = filled(weir, WAYS["deletes"])
    assert len(first.files) == 4
    store.world.append([("key 3", 1000, "u"), ("key 4", 0, "d"), ("new", 7, "u")])
    second = store.build()
    assert store.found(second) == store.expected()
    shared = paths(first) & paths(second)
    assert 1 <= len(shared) < len(first.files)
    for _ in range(4):  # until there are so many files that all are sorted anew
        store.world.append([("key 5", 1, "u"), ("another", 2, "u")])
        version = store.build()
        assert store.found(version) == store.expected()
        assert len(version.files) <= 7
    ranges = sorted((file.low, file.high) for file in version.files)
    assert all(low <= high for low, high in ranges)
    store.world.append(
        [(f"key {i}", 0, "d") for i in range(80)] + [("another", 0, "d"), ("new", 0, "d")]
    )
    empty = store.build()
    assert (store.found(empty), empty.files) == ({}, ())
    known = "SELECT path FROM adjunct_file UNION SELECT path FROM garbage"
    listed = {row.path for row in weir.query(known)}
    warehouse = Path(weir.settings.warehouse)
    on_disk = {
        str(path.relative_to(warehouse)) for path in warehouse.glob("_weir_adjunct=*/**/*.parquet")
    }
    assert on_disk <= listed


def test_another_value_is_applied_to_the_last_version_without_its_history(
    weir: Installation,
) -> None:
    store, _ = filled(weir, WAYS["whole"])
    store.world.append([("late", 4, "u")])
    store.build()
    store.world.truncate()
    for way in ("struct", "deletes", "whole"):
        store.redefine(WAYS[way])
        store.world.append([(f"key {len(store.world.events)}", 5, "u")])
        version = store.build()
        assert store.found(version) == store.expected()
    kinds = store.world.weir.query("SELECT kind FROM adjunct_version ORDER BY version")
    assert [row.kind for row in kinds] == ["rebuilt", "extended", *["converted"] * 3]


def test_another_key_is_made_of_what_the_stream_still_has(weir: Installation) -> None:
    store, _ = filled(weir, WAYS["whole"])
    store.world.truncate()
    store.world.append([("Left", 4, "u"), ("left", 5, "u")])
    left = store.world.events[-2:]
    store.redefine(WAYS["null"])
    version = store.build()
    assert store.found(version) == store.expected(left) == {"LEFT": (5,)}
    assert (
        weir.value("SELECT complete_since FROM adjunct_version WHERE version = 2") == left[0].clock
    )


def test_columns_that_the_stream_gains_are_null_in_older_rows(weir: Installation) -> None:
    store, _ = filled(weir, WAYS["whole"], keys=3)
    frame = weir.spark.createDataFrame(
        [["more", 1, "u", "blue"]], "k string, n long, op string, c string"
    )
    weir.append(store.world.stream, frame)
    version = store.build()
    expected = {key: (*value, None) for key, value in store.expected().items()}
    assert store.found(version) == {**expected, "more": ("more", 1, "u", "blue")}


def test_an_empty_stream_without_columns_has_a_version_and_grows_from_it(
    weir: Installation,
) -> None:
    world = World.made(weir)
    store = world.store(WAYS["number"])
    empty = store.build()
    assert (empty.rows, store.build()) == (0, empty)
    world.append([("a", 5, "u")])
    assert store.found(store.build()) == {5: ("a",)}


@pytest.mark.parametrize("keyless", [False, True])
def test_events_that_leave_no_key_make_an_empty_version(weir: Installation, keyless: bool) -> None:
    world = World.made(weir)
    deleting = WAYS["deletes"]
    always = Way(replace(deleting.definition, value="named_struct('n', n)",
                         delete_when="n >= 0"), deleting.key, lambda e: None)  # fmt: skip
    world.append([(None if keyless else "a", 1, "u"), (None if keyless else "b", 2, "d")])
    for way in (deleting, always):
        store = world.store(way, history=86400)
        assert store.found(store.build()) == ({} if keyless else store.expected())
        store.redefine(always)
        assert store.found(store.build()) == {}
    world.truncate()
    late = world.store(WAYS["number"])
    assert late.build().rows == 0
    world.append([("c", 3, "u")])
    assert late.found(late.build()) == {3: ("c",)}


def test_a_null_key_is_counted_or_stops_the_build_with_its_place(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    world.append([("a", 1, "u"), (None, 2, "u"), (None, 3, "u")])
    store = world.store(WAYS["whole"])
    store.build()
    [row] = weir.query("SELECT null_keys, upserts, events FROM adjunct_version")
    assert tuple(row) == (2, 1, 3)
    strict = world.store(WAYS["whole"], null_key="fail")
    with raises("adjunct_key_null 2 3 0.0 1"):
        strict.build()
    error = weir.value("SELECT error FROM adjunct_stores WHERE adjunct_store = :n", n=strict.name)
    assert "have no key" in error


FAILING = Way(
    AdjunctDefinition(value="cast(op as int)"), lambda e: e.k, lambda e: (int(e.op),)
)  # fmt: skip


@pytest.mark.parametrize("grown", [False, True])
def test_a_row_that_fails_stops_the_build_or_is_left_out(weir: Installation, grown: bool) -> None:
    world = World.made(weir, segments=1)
    stores = [world.store(FAILING), world.store(FAILING, on_error="skip")]
    if grown:
        world.append([("a", 1, "1"), ("b", 1, "2")])
        for store in stores:
            store.build()
    world.append([("a", 2, "x"), ("c", 2, "3")])
    with raises("adjunct_rows_fail 1 of 2 0.0"):
        stores[0].build()
    assert "fails for 1 of 2" in weir.value(
        "SELECT error FROM adjunct_stores WHERE adjunct_store = :n", n=stores[0].name
    )
    update_store(weir.database, stores[0].name, {"on_error": "skip"}, {}, request_id="skip")
    mended = stores[0].build()
    [row] = weir.query(
        """SELECT v.attempt, g.reason FROM adjunct_version v JOIN garbage g
        ON g.path = format('_weir_adjunct=%s/version=%s/attempt=1/', v.store_id, v.version)
        WHERE v.store_id = :a AND v.version = :v""",
        a=mended.store_id, v=mended.version,
    )  # fmt: skip
    assert tuple(row) == (2, "fenced")
    version = stores[1].build()
    assert stores[0].found(mended) == stores[1].found(version)
    good = [event for event in world.events if event.op.isdigit()]
    assert stores[1].found(version) == stores[1].expected(good)
    assert (
        weir.value(
            "SELECT failed_rows FROM adjunct_version WHERE version = :v AND upserts > 0"
            " ORDER BY started_at DESC LIMIT 1",
            v=version.version,
        )
        == 1
    )


def test_events_that_fail_are_quarantined_once_however_often_they_are_built(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.made(weir, segments=1)
    store = world.store(FAILING, on_error="quarantine")
    world.append([("a", 1, "1"), ("b", 2, "x")])

    def die(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("weir.spark.adjunct_build.publish_build", die)
        with pytest.raises(ZeroDivisionError):
            store.build()
    assert store.found(store.build()) == {"a": (1,)}
    world.append([("c", 3, "y"), ("a", 4, "4")])
    assert store.found(store.build()) == {"a": (4,)}
    cautious = Way(
        AdjunctDefinition(value="cast(op as int)", delete_when="cast(k as int) = 7"),
        lambda e: e.k, lambda e: (int(e.op),),
    )  # fmt: skip
    store.redefine(cautious)
    assert store.found(store.build()) == {}  # a row of the base fails, and that is all of them
    rejected = weir.check(stream_name(f"{world.stream}.rejected"), key=None)
    source = f"adjunct store {store.name}"
    fails = "the value 'cast(op as int)' fails"
    found = [
        (json.loads(row["row"]), row["source"], row["place"], row["reason"])
        for _, row in rejected.sort_values("_clock").astype(object).iterrows()
    ]
    assert found[:2] == [
        ({"k": "b", "n": 2, "op": "x"}, f"{source}, segment 0.0", 1, fails),
        ({"k": "c", "n": 3, "op": "y"}, f"{source}, segment 0.0", 2, fails),
    ]
    [(row, its_source, place, reason)] = found[2:]
    assert (row, its_source) == ({"k": "a", "n": 4, "op": "4"}, source)
    assert pd.isna(place)
    assert reason == "the delete condition 'cast(k as int) = 7' fails"
    weir.settings = replace(weir.settings, rejected_events=1)
    world.append([("d", 1, "x"), ("e", 2, "x")])
    with raises("adjunct_too_many_rejected 2 1"):
        store.build()
    update_store(weir.database, store.name, {"on_error": "skip"}, {}, request_id="skip")
    with raises("adjunct_too_many_rejected 2 1"):
        store.build()


MODULE = """
import pyarrow as pa
import pyarrow.compute as pc

def keys(events):
    if "poison" in events.column("op").to_pylist():
        raise ValueError("poison")
    if "away" in events.column("op").to_pylist():
        raise ConnectionRefusedError("the service is away")
    return pc.utf8_upper(events.column("k"))

def values(events):
    n = pc.multiply(events.column("n"), FACTOR)
    return pa.StructArray.from_arrays([n], names=["n"], mask=pc.equal(events.column("op"), "d"))

def wrong(events):
    return pa.array(["x"])

def hasty(events):
    return pa.array([events.column("k")[0].as_py()] * len(events))

def two(events, more):
    return events.column("k")

def sometimes(events):
    return pc.utf8_upper(events.column("k")) if events.num_rows else pa.array([], pa.int64())
"""


@pytest.fixture
def functions(weir: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "adjunct_functions.py"
    file.write_text(MODULE.replace("FACTOR", "2"))
    weir.settings = replace(
        weir.settings, function_path=(str(tmp_path),), function_packages=("adjunct_functions",)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "adjunct_functions", raising=False)
    return file


def test_functions_make_keys_and_values_and_other_code_makes_them_anew(
    weir: Installation, functions: Path
) -> None:
    definition = AdjunctDefinition(
        key="adjunct_functions:keys", key_type="STRING", value="adjunct_functions:values",
        value_columns="n BIGINT",
    )  # fmt: skip
    way = Way(
        definition, lambda e: None if e.op == "poison" else e.k and e.k.upper(),
        lambda e: None if e.op == "d" else (e.n * 2,),
    )  # fmt: skip
    world = World.made(weir)
    rows = [("a", 1, "u"), ("b", 2, "u"), ("A", 3, "u"), (None, 4, "u"), ("x", 5, "poison")]
    world.append(rows)
    store = world.store(way, on_error="skip")
    assert store.found(store.build()) == store.expected() == {"A": (6,), "B": (4,)}
    world.append([("b", 2, "d"), ("c", 6, "u")])
    assert store.found(store.build()) == store.expected()
    for name, code in {
        "wrong": "function_result_invalid", "two": "function_fails",
        "hasty": "function_fails adjunct_functions:hasty without events",
        "missing": "function_not_loadable", "pa": "function_not_loadable",
    }.items():  # fmt: skip
        wrong = AdjunctDefinition(value=f"adjunct_functions:{name}", value_columns="a STRING")
        with raises(code):
            check_definition(weir.spark, weir.database, weir.settings, "s/x", world.stream, wrong)
    late = AdjunctDefinition(key="adjunct_functions:sometimes", key_type="BIGINT")
    check_definition(weir.spark, weir.database, weir.settings, "s/x", world.stream, late)
    mistaken = world.store(replace(way, definition=late), on_error="skip")
    with pytest.raises(PythonException, match="returned string, but the store declares int64"):
        mistaken.build()  # nothing is skipped for a mistake of the function

    def waiting() -> list[str]:
        names, built_with = weir.database.transaction(lambda c: stores_to_build(c, [store.name]))
        return [*names, *with_other_code(weir.database, weir.settings, built_with)]

    assert waiting() == []
    functions.write_text(MODULE.replace("FACTOR", "3"))
    assert waiting() == [store.name]
    version = store.build()
    kinds = weir.query(
        "SELECT kind FROM adjunct_version WHERE store_id = :a ORDER BY version", a=version.store_id
    )
    assert [row.kind for row in kinds] == ["rebuilt", "extended", "rebuilt"]
    assert version.rows == 2
    world.append([("d", 7, "away")])
    with pytest.raises(PythonException, match="the service is away"):  # it skips no event for that
        store.build()
    [report] = build_stores(
        weir.database, weir.settings, "builder", lambda: weir.appender, [store.name]
    )
    assert "the service is away" in report["error"]
    assert report["error"].endswith("[adjunct_build_failed]")


def test_one_key_is_looked_up_in_any_version_without_spark(weir: Installation) -> None:
    store, first = filled(weir, WAYS["struct"])
    store.world.append([("key 7", 500, "u"), ("key 8", 0, "d")])
    second = store.build()

    def look(key: Any, version: int | None = None) -> dict[str, Any] | None:
        warehouse = weir.settings.warehouse
        return look_up(weir.database, warehouse, store.name, key, version)

    found = look("key 7")
    assert found is not None
    assert (found["twice"], found["op"]) == (1000, "u")
    assert found["_clock"] == store.world.events[-1].clock
    old = look("key 7", first.version)
    assert old is not None
    assert old["twice"] == 14
    assert look("key 8") is None
    assert look("key 8", first.version) is not None
    assert look("nothing") is None
    with raises("adjunct_version_not_found 9"):
        look("key 7", 9)
    assert second.version == 2
    for version, twice in ((None, 1000), (first.version, 14)):
        listed = weir.query("SELECT path FROM adjunct(:s, :v)", s=store.name, v=version)
        files = [f"{weir.settings.warehouse}/{path}" for (path,) in listed]
        sql = "SELECT twice FROM read_parquet(?, union_by_name => true) WHERE _weir_key = 'key 7'"
        assert duckdb.execute(sql, [files]).fetchall() == [(twice,)]
    exact = AdjunctDefinition(key="cast(n as decimal(9, 2))")
    decimals = store.world.store(replace(WAYS["number"], definition=exact))
    decimals.build()
    for key in (7, 7.0, Decimal("7.0"), "7.00"):
        assert look_up(weir.database, weir.settings.warehouse, decimals.name, key) is not None
    assert look_up(weir.database, weir.settings.warehouse, decimals.name, 7.001) is None
    numbers = store.world.store(WAYS["number"])
    numbers.build()
    row = look_up(weir.database, weir.settings.warehouse, numbers.name, 3)
    assert row is not None
    assert (row["value"],) == numbers.expected()[3]


def test_two_versions_are_compared_by_the_files_that_they_do_not_share(weir: Installation) -> None:
    store, first = filled(weir, WAYS["deletes"])
    same = store.world.events[5]
    store.world.append([("key 1", 99, "u"), ("key 2", 0, "d"), ("new", 1, "u"), ("key 5", 5, "u")])
    assert (same.k, same.n, same.op) == ("key 5", 5, "u")
    second = store.build()
    rows = diff_versions(weir.spark, weir.settings.warehouse, first, second).collect()
    changes = {row["_weir_key"]: (row["change"], row["before"], row["after"]) for row in rows}
    assert {key: change[0] for key, change in changes.items()} == {
        "key 1": "changed", "key 2": "removed", "new": "added",
    }  # fmt: skip
    assert json.loads(changes["key 1"][2])["n"] == 99
    other = store.world.store(WAYS["whole"]).build()
    with raises("adjunct_versions_differ"):
        diff_versions(weir.spark, weir.settings.warehouse, first, other)
