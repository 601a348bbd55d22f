"""Events are erased by a condition, and by the keys of a routing key that is an expression."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import weir as library
from tests.raises import raises
from tests.spark.adjunct_world import LONG, WAYS, World
from tests.spark.installation import Installation
from tests.world.streams import rows, run
from weir.adjunct.versions import read_version
from weir.erasure import stores as stores_of_erasures
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand, perform
from weir.spark.adjuncts.read import current_frame


def test_a_condition_erases_what_it_is_true_for_and_everything_only_if_that_is_meant(
    weir: Installation,
) -> None:
    def erase(**arguments: Any) -> dict[str, Any]:
        job = Job(
            "erase", by_hand("erase"), weir.settings, weir.database, start_spark=lambda: weir.spark
        )
        return perform(
            job, ACTIONS["erase"], {"stream": "s/people", "reason": "asked", **arguments}
        )

    def found(said: dict[str, Any]) -> int:
        events, _files = said["streams"]["s/people"]
        return int(events)

    def left() -> list[int]:
        return sorted(library.read("s/people", settings=weir.settings)["n"].to_pylist())

    with library.open(settings=weir.settings, spark=weir.spark) as store:
        store.create_stream("s/people", "concat(who, '!')", segments=2)
        store.append(
            "s/people",
            weir.spark.createDataFrame([(f"w{n % 3}", n) for n in range(9)], "who string, n int"),
        )
    assert found(erase(keys=["w1!"])) == 3
    assert erase(keys=["w1!"], dry_run=False)["events"] == 3
    assert left() == [0, 2, 3, 5, 6, 8]
    assert erase(condition="who = 'nobody'", dry_run=False)["events"] == 0
    assert found(erase(condition="n >= 0")) == 6
    with raises("erases_everything"):  # and leaves no request behind
        erase(condition="n >= 0", dry_run=False)
    assert erase(condition="who = 'w2' AND n > 2", dry_run=False)["events"] == 2
    assert left() == [0, 2, 3, 6]
    assert erase(condition="n >= 0", everything=True, dry_run=False)["events"] == 4
    assert left() == []
    asked = """SELECT certificate #>> '{document,asked,condition}' AS condition
        FROM weir.certificates ORDER BY asked_at"""
    assert [row.condition for row in rows(weir.database, asked)] == [
        None,
        "who = ? AND n > ?",
        "n >= ?",
    ]
    kept = rows(weir.database, "SELECT arguments::text FROM weir.job_runs WHERE job = 'erase'")
    assert not [row for row in kept if "w1" in str(row) or "w2" in str(row)]


def test_an_adjunct_store_forgets_the_keys_in_all_versions_and_its_history(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores_of_erasures, "WAIT", 0.1)
    world = World.made(weir)
    whole = world.store(WAYS["whole"], history=LONG)
    other = world.store(WAYS["null"])  # of other keys, without the column
    stores = (whole, other)
    world.append([("a", 1, "u"), ("b", 2, "u"), ("who-0815", 3, "u")])
    first = [store.build() for store in stores]
    world.append([("who-0815", 4, "u"), ("c", 5, "u"), ("b", 6, "d")])
    second = [store.build() for store in stores]
    with library.open(settings=weir.settings, spark=weir.spark) as store:
        asked: dict[str, Any] = {"reason": "asked", "keys": ["who-0815"]}
        measured = store.erase(str(world.stream), **asked)
        run(
            weir.database,
            """INSERT INTO adjunct_version (store_id, version, definition, state, kind, from_cut,
                cut, clock, builder, lease_until, started_at)
            SELECT store_id, 99, definition, 'building', 'extended', from_cut, cut, clock,
                'somebody', now(), now()
            FROM adjunct_version WHERE store_id = :a AND version = 1""",
            a=first[0].store_id,
        )
        with raises("erasure_waits_for_store"):
            store.erase(str(world.stream), **asked, dry_run=False)
        run(weir.database, "DELETE FROM adjunct_version WHERE state = 'building'")
        done = store.erase(str(world.stream), **asked, dry_run=False)
    assert measured["stores"] == done["stores"]
    assert set(done["stores"]) == {whole.name}
    assert done["signed"]
    gone = weir.value("SELECT sum(events) FROM erasures WHERE stream = :s", s=str(world.stream))
    assert gone == 2
    assert [one["name"] for one in done["remains"] if one["what"] == "adjunct store"] == [
        other.name
    ]
    for old, new in zip(first[:1], second[:1], strict=True):
        for version in (old, new):
            read = partial(read_version, store_id=version.store_id, version=version.version)
            now = weir.database.snapshot(read)
            rows_of = current_frame(weir.spark, weir.settings.warehouse, now)
            assert rows_of.count() == now.rows
            assert "who-0815" not in str(rows_of.collect())
    [kept] = rows(
        weir.database,
        """SELECT certificate #> '{document,stores}' AS of FROM certificates
        WHERE state = 'signed'""",
    )
    assert kept.of == done["stores"]
    held = [path for path in Path(weir.settings.warehouse).rglob("*.parquet")
            if "who-0815" in str(pq.read_table(path).to_pylist())
            and "_weir_adjunct" in str(path)]  # fmt: skip
    names = {row.path for row in rows(
        weir.database, "SELECT path FROM adjunct_file JOIN adjunct_store USING (store_id) "
        "WHERE name = :name", name=other.name)}  # fmt: skip
    assert all(any(str(path).endswith(name) for name in names) for path in held)
    world.events = [event for event in world.events if event.k != "who-0815"]
    world.append([("d", 7, "u"), ("a", 8, "u")])
    assert whole.found(whole.build()) == whole.expected()
