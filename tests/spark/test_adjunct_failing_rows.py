"""What a store makes of rows that have no key, or on which its definition fails."""

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from tests.raises import raises
from tests.spark.adjunct_world import WAYS, Way, World
from tests.spark.installation import Installation
from weir.adjunct.stores import update_store
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import stream_name


@pytest.mark.release
def test_a_null_key_is_counted_or_stops_the_build_with_its_place(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    world.append([("a", 1, "u"), (None, 2, "u"), (None, 3, "u")])
    store = world.store(WAYS["whole"])
    store.build()
    [row] = weir.query("SELECT null_keys, upserts, events FROM adjunct_version")
    assert tuple(row) == (2, 1, 3)
    strict = world.store(WAYS["whole"], null_key="fail")
    with raises("bad_rows 2 3 0.0 1"):
        strict.build()
    error = weir.value("SELECT error FROM adjunct_stores WHERE adjunct_store = :n", n=strict.name)
    assert "have no key" in error


FAILING = Way(
    AdjunctDefinition(value="cast(op as int)"), lambda e: e.k, lambda e: (int(e.op),)
)  # fmt: skip


@pytest.mark.release
@pytest.mark.parametrize("grown", [False, True])
def test_a_row_that_fails_stops_the_build_or_is_left_out(weir: Installation, grown: bool) -> None:
    world = World.made(weir, segments=1)
    stores = [world.store(FAILING), world.store(FAILING, on_error="skip")]
    if grown:
        world.append([("a", 1, "1"), ("b", 1, "2")])
        for store in stores:
            store.build()
    world.append([("a", 2, "x"), ("c", 2, "3")])
    with raises("bad_rows 1 of 2 0.0"):
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
        patch.setattr("weir.spark.adjuncts.build.publish_build", die)
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
    with raises("bad_rows 2 1 raise"):
        store.build()
    update_store(weir.database, store.name, {"on_error": "skip"}, {}, request_id="skip")
    with raises("bad_rows 2 1 raise"):
        store.build()
