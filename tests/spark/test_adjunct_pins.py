"""The version that a batch is read with is decided once, and kept as long as the batch is open."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlalchemy import text

from tests.raises import raises
from tests.spark.adjunct_world import EVENTS, LONG, WAYS, World, reading, rows
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from tests.world.streams import unique
from weir.adjunct.expiry import expire_versions
from weir.adjunct.stores import delete_store, update_store
from weir.controller.seal import seal_stream
from weir.model.names import stream_name
from weir.retention.delete_stream import delete_stream


@pytest.fixture
def world(weir: Installation) -> World:
    """A stream of changes, and another one of events, which a group reads."""
    return World.beside_events(weir)


def test_every_attempt_at_a_batch_reads_the_same_version(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    weir.put(EVENTS, [("a", 1)])
    outs = []
    for _ in range(3):
        with reading(weir, store) as reader:  # which ends without a commit
            batch = next(reader)
            outs.append(rows(batch.adjunct(store.name).select("_weir_key", "n")))
            world.append([("a", 2, "u"), ("b", 3, "u")])
            store.build()
    assert outs == [[("a", 1)]] * 3
    assert weir.query("SELECT state, version FROM adjunct_pins") == [("pinned", 1)]
    weir.put(EVENTS, [("b", 2)])
    with reading(weir, store) as reader:
        seen = []
        for batch in reader:
            seen.append(rows(batch.adjunct(store.name).select("_weir_key", "n")))
            batch.commit()
    # The first batch as before; the next one with what was committed before its newest event.
    assert seen == [[("a", 1)], [("a", 2), ("b", 3)]]


@pytest.mark.release
def test_two_open_batches_are_read_with_versions_of_their_own_which_do_not_expire(
    weir: Installation, world: World
) -> None:
    weir.group(EVENTS, name="others")
    store = world.store(WAYS["whole"], keep_versions=1)
    numbers: dict[str, list[tuple[Any, ...]]] = {}
    for number, group in enumerate(("readers", "others"), start=1):
        world.append([("a", number, "u")])
        weir.put(EVENTS, [("a", number)])
        with reading(weir, store, group=group) as reader:
            numbers[group] = rows(next(reader).adjunct(store.name).select("n"))
    assert numbers == {"readers": [(1,)], "others": [(2,)]}
    world.append([("a", 3, "u")])
    store.build()
    weir.database.transaction(
        lambda c: c.execute(text("UPDATE adjunct_version SET superseded_at = '-infinity' "
                                 "WHERE superseded_at IS NOT NULL"))
    )  # fmt: skip
    for group in ("readers", "others"):
        assert expire_versions(weir.database) == []
        sweep(weir.database, weir.settings.warehouse, 0.0)
        with reading(weir, store, group=group) as reader:
            batch = next(reader)
            assert rows(batch.adjunct(store.name).select("n")) == numbers[group]
        with raises("batch_open adjunct"):
            delete_store(weir.database, store.name, request_id=unique("delete"))
    for group in ("readers", "others"):
        with reading(weir, store, group=group) as reader:
            next(reader).commit()
    [expired] = expire_versions(weir.database)
    assert expired["expired"] == [1, 2]


@pytest.mark.release
def test_a_consumer_of_a_store_whose_stream_was_deleted_is_read_with_what_there_is(
    weir: Installation, world: World
) -> None:
    built, never = world.store(WAYS["whole"], history=LONG), world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    built.build()
    seal_stream(weir.database, world.stream, request_id=unique("seal"))
    delete_stream(weir.database, world.stream, unread_too=True, request_id=unique("delete"))
    weir.put(EVENTS, [("a", 1)])
    with raises("stream_deleted"), reading(weir, never) as reader:
        next(reader)
    with reading(weir, built) as reader:
        batch = next(reader)
        for as_of in (True, False):
            joined = batch.enrich(batch.events, built.name, "k", as_of=as_of, prefix="v_")
            assert rows(joined.select("n", "v_n")) == [(1, 1)]
        batch.commit()


@pytest.mark.release
def test_several_stores_are_complete_to_the_same_bound(weir: Installation, world: World) -> None:
    other = World.made(weir)
    world.append([("a", 1, "u")])
    other.append([("a", 10, "u")])
    weir.put(EVENTS, [("a", 1)])
    world.append([("a", 2, "u")])
    other.append([("a", 20, "u")])
    stores = [world.store(WAYS["whole"]), other.store(WAYS["whole"])]
    with reading(weir, *stores) as reader:
        batch = next(reader)
        joined = batch.enrich(batch.events, stores[0].name, "k", prefix="one_")
        joined = batch.enrich(joined, stores[1].name, "k", prefix="two_")
        assert rows(joined.select("one_n", "two_n")) == [(1, 10)]
        clocks = weir.query("SELECT DISTINCT clock FROM adjunct_pin")
        assert clocks == [
            (weir.value("SELECT last_clock FROM stream WHERE stream_name = :s", s=str(EVENTS)),)
        ]
        batch.commit()


@pytest.mark.release
@pytest.mark.parametrize(("bootstrap", "value"), [("batch", 1), ("tail", 3), ("none", 2)])
def test_bootstrap_says_what_a_version_must_be_complete_to(
    weir: Installation, world: World, bootstrap: str, value: int
) -> None:
    store = world.store(WAYS["whole"], bootstrap=bootstrap)
    world.append([("a", 1, "u")])
    weir.put(EVENTS, [("a", 1)])
    if bootstrap == "none":
        world.append([("a", 2, "u")])
        store.build()
    world.append([("a", 3, "u")])
    with reading(weir, store) as reader:
        assert rows(next(reader).adjunct(store.name).select("n")) == [(value,)]


@pytest.mark.release
def test_a_missing_version_is_built_refused_or_empty(weir: Installation, world: World) -> None:
    world.append([("a", 1, "u")])
    weir.put(EVENTS, [("a", 1)])
    store = world.store(WAYS["whole"], missing="fail", history=LONG)
    with raises("adjunct_version_not_found missing"), reading(weir, store) as reader:
        next(reader)
    update_store(weir.database, store.name, {"missing": "empty"}, {}, request_id=unique("empty"))
    numbers = world.store(WAYS["number"], missing="empty")
    for _ in range(2):
        with reading(weir, store, numbers) as reader:
            batch = next(reader)
            for as_of in (True, False):
                joined = batch.enrich(batch.events, store.name, "k", as_of=as_of, prefix="v_")
                assert rows(joined.select("n", "v_n")) == [(1, None)]
            joined = batch.enrich(batch.events, numbers.name, F.col("n"))
            assert rows(joined.select("n", "value")) == [(1, None)]
        store.build()  # the batch is read with the empty table nevertheless
    assert weir.query("SELECT state, version FROM adjunct_pins") == [("empty", None)] * 2


@pytest.mark.release
def test_the_halves_of_a_batch_are_read_with_its_version(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    weir.put(EVENTS, [("a", n) for n in range(4)])

    def function(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
        world.append([("a", 5, "u")])
        store.build()
        n = F.when(F.col("n") == 2, F.raise_error(F.lit("two"))).otherwise(F.col("n"))
        joined = events.join(adjuncts[store.name].select("_weir_key", F.col("n").alias("v")),
                             F.col("k") == F.col("_weir_key"))  # fmt: skip
        return joined.select("k", (n * 100 + F.col("v")).alias("n"))

    consumer = weir.consumer(
        "readers", function, "stream:s/out", on_error="quarantine", adjuncts=(store.name,)
    )
    report = consumer.run()
    assert (report["events"], report["rejected"]) == (4, 1)
    assert all(one["adjuncts"] == {store.name: 1} for one in report["batches"])
    assert sorted(weir.facts(stream_name("s/out"))["n"]) == [1, 101, 301]
