"""Consumers join each batch with one version of a store: the one that is pinned to it."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.chance import random_for
from tests.controller.support import unique
from tests.raises import raises
from tests.spark.adjunct_world import WAYS, Store, World
from tests.spark.installation import Installation
from weir.adjunct.stores import update_store
from weir.model.names import stream_name
from weir.spark.adjuncts import AdjunctStoreManager
from weir.spark.open_batch import OpenBatch
from weir.spark.reader import Reader

pytestmark = pytest.mark.drawn(3)

EVENTS = stream_name("s/events")
LONG = 10_000_000


@pytest.fixture
def world(weir: Installation) -> World:
    """A stream of changes, and another one of events, which a group reads."""
    weir.create("s/events", segments=2)
    weir.create("s/out")
    weir.group(EVENTS)
    return World.made(weir)


def reading(weir: Installation, *stores: Store, **options: Any) -> Reader:
    """A reader of the group."""
    return Reader(
        weir.spark, "readers", reader_id="one", appender=weir.appender,
        adjuncts=[store.name for store in stores], **options,
    )  # fmt: skip


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def held(store: Store, key: Any, clock: int) -> tuple[Any, ...] | None:
    """What the store had for a key at a clock, by looking at every event."""
    return store.expected([e for e in store.world.events if e.clock <= clock]).get(key)


def last_clock(weir: Installation, stream: str) -> int:
    return int(weir.value("SELECT last_clock FROM stream WHERE stream_name = :s", s=stream))


@pytest.mark.parametrize(("way", "layout"), [("deletes", "broadcast"), ("struct", "partitioned"),
                                             ("null", "auto")])  # fmt: skip
def test_events_find_what_the_store_had_now_and_at_their_clock(
    weir: Installation, world: World, way: str, layout: str
) -> None:
    random = random_for(way, layout)
    store = world.store(WAYS[way], layout=layout, history=LONG)
    for _ in range(3):
        world.grow(random)
        weir.append(EVENTS, [(random.choice(["a", "A", "b", "e", "q"]), n) for n in range(20)])
    store.build()
    world.grow(random)  # after the newest event, and so after the bound
    key: str | Column = F.upper("k") if way == "null" else "k"
    with reading(weir, store) as reader:
        for batch in reader:
            version = batch.adjuncts.pins[store.name].version
            assert version is not None
            assert version.clock < last_clock(weir, str(world.stream))
            events = batch.events().collect()
            for how in ("left", "inner"):
                for as_of in (True, False):
                    found = batch.enrich(
                        batch.events(), store.name, key, how, as_of=as_of, prefix="v_"
                    )
                    values = [c for c in found.columns if c.startswith("v_")]
                    wanted = []
                    for event in events:
                        at = event.k.upper() if way == "null" else event.k
                        value = held(store, at, event._clock if as_of else version.clock)
                        if value is not None or how == "left":
                            wanted.append((event.n, event._clock, *(value or [None] * len(values))))
                    assert rows(found.select("n", "_clock", *values)) == sorted(wanted, key=repr)
            batch.commit()


def test_every_attempt_at_a_batch_reads_the_same_version(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", 1)])
    outs = []
    for _ in range(3):
        with reading(weir, store) as reader:  # which ends without a commit
            batch = next(reader)
            outs.append(rows(batch.adjunct(store.name).select("_weir_key", "n")))
            world.append([("a", 2, "u"), ("b", 3, "u")])
            store.build()
    assert outs == [[("a", 1)]] * 3
    assert weir.query("SELECT state, version FROM adjunct_pins") == [("pinned", 1)]
    weir.append(EVENTS, [("b", 2)])
    with reading(weir, store) as reader:
        seen = []
        for batch in reader:
            seen.append(rows(batch.adjunct(store.name).select("_weir_key", "n")))
            batch.commit()
    # The first batch as before; the next one with what was committed before its newest event.
    assert seen == [[("a", 1)], [("a", 2), ("b", 3)]]


@pytest.mark.parametrize("step", ["record_targets", "_find", "pin_version"])
def test_a_reader_that_dies_while_it_prepares_a_batch_is_taken_over_at_that_step(
    weir: Installation, world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", 1)])

    def die(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch, reading(weir, store) as reader:
        patch.setattr(f"weir.spark.adjuncts.{step}", die)
        with pytest.raises(ZeroDivisionError):
            next(reader)
    assert weir.value("SELECT count(*) FROM adjunct_pins WHERE state <> 'preparing'") == 0
    world.append([("a", 2, "u")])  # later than the bound, which is that of the batch's events
    with reading(weir, store) as reader:
        batch = next(reader)
        assert batch.attempt == 2
        assert rows(batch.adjunct(store.name).select("n")) == [(1,)]
        batch.commit()


def test_several_stores_are_complete_to_the_same_bound(weir: Installation, world: World) -> None:
    other = World.made(weir)
    world.append([("a", 1, "u")])
    other.append([("a", 10, "u")])
    weir.append(EVENTS, [("a", 1)])
    world.append([("a", 2, "u")])
    other.append([("a", 20, "u")])
    stores = [world.store(WAYS["whole"]), other.store(WAYS["whole"])]
    with reading(weir, *stores) as reader:
        batch = next(reader)
        joined = batch.enrich(batch.events(), stores[0].name, "k", prefix="one_")
        joined = batch.enrich(joined, stores[1].name, "k", prefix="two_")
        assert rows(joined.select("one_n", "two_n")) == [(1, 10)]
        clocks = weir.query("SELECT DISTINCT clock FROM adjunct_pin")
        assert clocks == [(last_clock(weir, "s/events"),)]
        batch.commit()


@pytest.mark.parametrize(("bootstrap", "value"), [("bound", 1), ("tail", 3), ("none", 2)])
def test_bootstrap_says_what_a_version_must_be_complete_to(
    weir: Installation, world: World, bootstrap: str, value: int
) -> None:
    store = world.store(WAYS["whole"], bootstrap=bootstrap)
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", 1)])
    if bootstrap == "none":
        world.append([("a", 2, "u")])
        store.build()
    world.append([("a", 3, "u")])
    with reading(weir, store) as reader:
        assert rows(next(reader).adjunct(store.name).select("n")) == [(value,)]


def test_a_missing_version_is_built_refused_or_empty(weir: Installation, world: World) -> None:
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", 1)])
    store = world.store(WAYS["whole"], missing="fail", history=LONG)
    with raises("adjunct_version_missing"), reading(weir, store) as reader:
        next(reader)
    update_store(weir.database, store.name, {"missing": "empty"}, {}, request_id=unique("empty"))
    for _ in range(2):
        with reading(weir, store) as reader:
            batch = next(reader)
            for as_of in (True, False):
                joined = batch.enrich(batch.events(), store.name, "k", as_of=as_of, prefix="v_")
                assert rows(joined.select("n", "v_n")) == [(1, None)]
        store.build()  # the batch is read with the empty table nevertheless
    assert weir.query("SELECT state, version FROM adjunct_pins") == [("empty", None)]


def test_the_halves_of_a_batch_are_read_with_its_version(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", n) for n in range(4)])

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


def test_a_stream_that_is_bound_as_a_store_is_not_delivered(
    weir: Installation, world: World
) -> None:
    world.append([("a", 1, "u")])
    group = weir.group(EVENTS, world.stream, name="both")
    weir.group(world.stream, name="others")
    weir.append(EVENTS, [("a", 1)])
    store = world.store(WAYS["whole"])
    seen: list[Any] = []

    def function(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
        seen.append(rows(events.select("n")))
        assert list(adjuncts) == [store.name]
        return events.select("k", "n")

    def run() -> dict[str, Any]:
        return weir.consumer(group, function, "stream:s/out", adjuncts=(store.name,)).run()

    assert run()["events"] == 1
    world.append([("a", 2, "u")])
    assert run()["batches"] == []
    assert seen == [[(1,)]]
    unread = dict(weir.query("SELECT reader_group || stream, unread_events FROM lag"))
    assert unread[f"both{world.stream}"] == 0
    assert unread[f"others{world.stream}"] == 2
    with raises("no_primary_stream"):
        weir.consumer("others", function, "stream:s/out", adjuncts=(store.name,)).run()


def test_a_store_of_the_consumers_own_output_is_pinned_or_refused(
    weir: Installation, world: World
) -> None:
    out = World(weir, stream_name("s/out"))
    weir.append(EVENTS, [("a", 1)])
    store = out.store(WAYS["number"], bootstrap="tail")

    def count(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
        before = adjuncts[store.name].agg(F.count("*").alias("n"))
        return events.select("k").crossJoin(before)

    consumer = weir.consumer("readers", count, "stream:s/out", adjuncts=(store.name,))
    with raises("adjunct_cycle"):
        consumer.run()
    update_store(weir.database, store.name, {"bootstrap": "bound"}, {}, request_id=unique("b"))
    consumer.run()
    weir.append(EVENTS, [("a", 2)])
    consumer.run()
    # The second batch sees what the first one has written, and no batch sees what it writes.
    assert list(weir.facts(stream_name("s/out")).sort_values("_clock")["n"]) == [0, 1]


class EvenOnly(AdjunctStoreManager):
    """Delivers events with an even number, and shows keys before `b`."""

    def delivered(self, stream: str, events: DataFrame) -> DataFrame:
        return events.where("n % 2 = 0")

    def stored(self, store: str, rows: DataFrame) -> DataFrame:
        return rows.where("_weir_key < 'b'")


def test_a_manager_decides_what_is_delivered_and_what_is_seen(
    weir: Installation, world: World
) -> None:
    store = world.store(WAYS["whole"], history=LONG)
    world.append([("a", 1, "u"), ("b", 2, "u")])
    weir.append(EVENTS, [(k, n) for n in range(2) for k in "ab"])

    def check(batch: OpenBatch) -> None:
        for as_of in (True, False):
            joined = batch.enrich(batch.events(), store.name, "k", as_of=as_of, prefix="v_")
            assert rows(joined.select("k", "n", "v_n")) == [("a", 0, 1), ("b", 0, None)]

    with reading(weir, store, manager=EvenOnly) as reader:
        for batch in reader:
            check(batch)
            batch.commit()
    assert weir.value("SELECT unread_events FROM lag WHERE reader_group = 'readers'") == 0
    with raises("manager_invalid"), reading(weir, store, manager=dict):
        pass


def test_values_hold_from_a_time_of_their_own(weir: Installation) -> None:
    weather = weir.create("s/weather")
    weir.create("s/events")
    weir.group(stream_name("s/events"))
    world = World(weir, weather)
    store = world.store(WAYS["whole"], history=LONG)
    hour = F.expr("timestamp '2013-01-01 00:00:00Z' + make_interval(0, 0, 0, 0, cast(n as int))")
    # Written in no order of time; the second one of an hour counts.
    for numbers in ([3, 1], [2, 3]):
        frame = weir.spark.createDataFrame([("a", n) for n in numbers], "k string, n long")
        weir.append(weather, frame.select("k", hour.alias("hour"), "n"))
    events = weir.spark.createDataFrame([("a", n) for n in range(5)], "k string, n long")
    local = hour.cast("timestamp_ntz").alias("local")
    weir.append(EVENTS, events.select("k", hour.alias("hour"), local, "n"))
    with reading(weir, store) as reader:
        batch = next(reader)
        for column in ("hour", "local"):
            joined = batch.enrich(
                batch.events(), store.name, "k", as_of=column, valid_from="hour", prefix="v_"
            )
            assert rows(joined.select("n", "v_n")) == [(0, None), (1, 1), (2, 2), (3, 3), (4, 3)]
        # Without it, a value holds from its commit on: long after 2013.
        joined = batch.enrich(batch.events(), store.name, "k", as_of="hour", prefix="v_")
        assert rows(joined.select("v_n").distinct()) == [(None,)]


def test_wrong_joins_are_refused(weir: Installation, world: World) -> None:
    world.append([("a", 1, "u")])
    weir.append(EVENTS, [("a", 1)])
    store, other = world.store(WAYS["number"]), world.store(WAYS["whole"], history=LONG)
    with raises("adjunct_named_twice"), reading(weir, store, store):
        pass
    with reading(weir, store, other) as reader:
        batch = next(reader)
        events = batch.events()
        for code, arguments in {
            "adjunct_not_bound": {"name": "s/none"},
            "adjunct_key_type": {"name": store.name},
            "adjunct_column_twice": {"name": other.name},
            "adjunct_without_history": {"name": store.name, "as_of": True},
            "as_of_not_a_time": {"name": other.name, "as_of": "n"},
            "argument_invalid": {"name": other.name, "how": "full"},
        }.items():
            with raises(code):
                batch.enrich(
                    events, on="k", **{"prefix": "" if "twice" in code else "v_", **arguments}
                )
        with raises("argument_invalid"):
            batch.enrich(events, other.name, "k", valid_from="n")
        # A number finds keys of another type of numbers; one that does not fit finds none.
        for on, found in ((F.lit(1).cast("tinyint"), "a"), (F.lit(2.0**70), None)):
            joined = batch.enrich(events, store.name, on)
            assert rows(joined.select("value")) == [(found,)]


def test_consumers_name_their_stores(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    with raises("parameters_invalid"):
        weir.consumer("readers", lambda events: events, "stream:s/out", adjuncts=(store.name,))
    with raises("parameters_invalid"):
        weir.consumer("readers", lambda events, adjuncts: events, "stream:s/out",
                      parameters={"adjuncts": 1})  # fmt: skip
    with raises("adjunct_store_not_found"):
        weir.consumer("readers", lambda events, adjuncts: events, "stream:s/out",
                      adjuncts=("s/none",)).run()  # fmt: skip
