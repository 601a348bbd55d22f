"""An erasure looks through very many events in tasks of Spark, and finds keys in adjunct stores."""

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
from weir.annex.erasure import places_in_tasks as places
from weir.annex.erasure import stores as stores_of_erasures
from weir.operations.jobs import ACTIONS
from weir.spark.adjuncts.read import current_frame
from weir.spark.base.calls import called_in_tasks


def test_very_many_events_are_looked_through_in_tasks(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ACTIONS["erase"].run.__globals__, "MUCH", 0)
    asked: list[int] = []

    def counting(spark: Any, function: Any, groups: Any) -> list[str]:
        asked.append(len(groups))
        return called_in_tasks(spark, function, groups)

    monkeypatch.setattr("weir.spark.base.calls.called_in_tasks", counting)
    monkeypatch.setattr(places, "_AT_ONCE", 100)
    with library.open(settings=weir.settings, spark=weir.spark) as store:
        store.create_stream("s/people", "lower(who)", segments=2)
        for part in range(3):
            many = weir.spark.range(300 * part, 300 * (part + 1))
            store.append("s/people", many.selectExpr("concat('W', id % 7) AS who", "id AS n"))
        assert store.erase("s/people", "asked", keys=["w1"], dry_run=False)["events"] == 129
        of_w2 = "who = 'W2' AND n BETWEEN 200 AND 400"
        assert store.erase("s/people", "asked", condition=of_w2, dry_run=False)["events"] == 28
        left = store.read("s/people")["n"].to_pylist()
        with raises("expression_not_computable"):
            store.erase("s/people", "asked", condition="m = 1", dry_run=False)
    assert sorted(left) == [
        n for n in range(900) if n % 7 != 1 and not (n % 7 == 2 and 200 <= n <= 400)
    ]
    assert asked[0] > 1


def test_an_adjunct_store_forgets_the_keys_in_all_versions_and_its_history(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores_of_erasures, "WAIT", 0.1)
    world = World.made(weir)
    whole = world.store(WAYS["whole"], history=LONG)
    other = world.store(WAYS["upper"])  # of other keys, without the column
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
        with raises("erasure_waits store"):
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
