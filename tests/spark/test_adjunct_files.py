"""Versions share what no change touches, and keep each key in one file, however they are built."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.raises import raises
from tests.spark.adjunct_world import WAYS, Store, Way, World
from tests.spark.installation import Installation
from weir.adjunct.lookup import look_up
from weir.adjunct.versions import AdjunctVersion
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.spark.adjuncts import writer as adjunct_writer
from weir.spark.adjuncts.diff import diff_versions


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


@pytest.mark.release
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


@pytest.mark.release
def test_another_key_is_made_of_what_the_stream_still_has(weir: Installation) -> None:
    store, _ = filled(weir, WAYS["whole"])
    store.world.truncate()
    store.world.append([("Left", 4, "u"), ("left", 5, "u")])
    left = store.world.events[-2:]
    store.redefine(WAYS["upper"])
    version = store.build()
    assert store.found(version) == store.expected(left) == {"LEFT": (5,)}
    assert (
        weir.value("SELECT complete_since FROM adjunct_version WHERE version = 2") == left[0].clock
    )


@pytest.mark.release
def test_an_empty_stream_without_columns_has_a_version_and_grows_from_it(
    weir: Installation,
) -> None:
    world = World.made(weir)
    store = world.store(WAYS["number"])
    empty = store.build()
    assert (empty.rows, store.build()) == (0, empty)
    world.append([("a", 5, "u")])
    assert store.found(store.build()) == {5: ("a",)}


@pytest.mark.release
@pytest.mark.parametrize("keyless", [False, True])
def test_events_that_leave_no_key_make_an_empty_version(weir: Installation, keyless: bool) -> None:
    world = World.made(weir)
    deleting = WAYS["deletes"]
    always = Way(replace(deleting.definition, value="n AS n",
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


@pytest.mark.release
def test_one_key_is_looked_up_in_any_version_without_spark(weir: Installation) -> None:
    store, first = filled(weir, WAYS["struct"])
    store.world.append([("key 7", 500, "u"), ("key 8", 0, "d")])
    second = store.build()

    def look(key: Any, version: int | None = None) -> dict[str, Any] | None:
        warehouse = weir.settings.warehouse
        return look_up(weir.database, warehouse, store.name, key, version)

    found = look("key 7")
    assert found is not None
    assert (found["told"], found["op"]) == ("u500", "u")
    assert found["_clock"] == store.world.events[-1].clock
    old = look("key 7", first.version)
    assert old is not None
    assert old["told"] == "u7"
    assert look("key 8") is None
    assert look("key 8", first.version) is not None
    assert look("nothing") is None
    with raises("adjunct_version_not_found 9"):
        look("key 7", 9)
    assert second.version == 2
    for version, told in ((None, "u500"), (first.version, "u7")):
        listed = weir.query("SELECT path FROM adjunct(:s, :v)", s=store.name, v=version)
        files = [f"{weir.settings.warehouse}/{path}" for (path,) in listed]
        sql = "SELECT told FROM read_parquet(?, union_by_name => true) WHERE _weir_key = 'key 7'"
        assert duckdb.execute(sql, [files]).fetchall() == [(told,)]
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


@pytest.mark.release
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
    with raises("join_invalid versions"):
        diff_versions(weir.spark, weir.settings.warehouse, first, other)
