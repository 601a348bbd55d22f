"""Consumers join each batch with one version of a store: the one that is pinned to it."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tests.chance import FULL, random_for
from tests.raises import raises
from tests.spark.adjunct_world import EVENTS, LONG, WAYS, Store, World, reading, rows
from tests.spark.installation import Installation
from tests.world.streams import unique
from weir.adjunct.stores import update_store
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.open_batch import OpenBatch
from weir.model.names import stream_name


@pytest.fixture
def world(weir: Installation) -> World:
    """A stream of changes, and another one of events, which a group reads."""
    return World.beside_events(weir)


def held(store: Store, key: Any, clock: int) -> tuple[Any, ...] | None:
    """What the store had for a key at a clock, by looking at every event."""
    return store.expected([e for e in store.world.events if e.clock <= clock]).get(key)


def last_clock(weir: Installation, stream: str) -> int:
    return int(weir.value("SELECT last_clock FROM stream WHERE stream_name = :s", s=stream))


@pytest.mark.parametrize(
    ("way", "layout"),
    [
        ("deletes", "broadcast"),
        pytest.param("struct", "partitioned", marks=pytest.mark.release),
        pytest.param("upper", "auto", marks=pytest.mark.release),
    ],
)
def test_events_find_what_the_store_had_now_and_at_their_clock(
    weir: Installation, world: World, way: str, layout: str
) -> None:
    random = random_for(way, layout)
    store = world.store(WAYS[way], layout=layout, history=LONG)
    for _ in range(3 if FULL else 2):
        world.grow(random)
        weir.put(EVENTS, [(random.choice(["a", "A", "b", "e", "q"]), n) for n in range(20)])
    store.build()
    world.grow(random)  # after the newest event, and so after the bound
    ways: list[str | Column] = [F.upper("k"), "upper(k)"] if way == "upper" else ["k"]
    with reading(weir, store) as reader:
        for batch in reader:
            version = batch.adjuncts.pins[store.name].version
            assert version is not None
            assert version.clock < last_clock(weir, str(world.stream))
            events = batch.events.collect()
            for how in ("left", "inner"):
                for as_of in (True, False):
                    found = batch.enrich(
                        batch.events, store.name, random.choice(ways), how, as_of=as_of, prefix="v_"
                    )
                    values = [c for c in found.columns if c.startswith("v_")]
                    wanted = []
                    for event in events:
                        at = event.k.upper() if way == "upper" else event.k
                        value = held(store, at, event._clock if as_of else version.clock)
                        if value is not None or how == "left":
                            wanted.append((event.n, event._clock, *(value or [None] * len(values))))
                    assert rows(found.select("n", "_clock", *values)) == sorted(wanted, key=repr)
            batch.commit()


@pytest.mark.release
def test_a_stream_that_is_bound_as_a_store_is_not_delivered(
    weir: Installation, world: World
) -> None:
    world.append([("a", 1, "u")])
    group = weir.group(EVENTS, world.stream, name="both")
    weir.group(world.stream, name="others")
    weir.put(EVENTS, [("a", 1)])
    store = world.store(WAYS["whole"])
    seen: list[Any] = []

    def function(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
        seen.append(rows(events.select("n")))
        assert list(adjuncts) == [store.name]
        return events.select("k", "n")

    def run() -> Mapping[str, Any]:
        return weir.consumer(group, function, "stream:s/out", adjuncts=(store.name,)).run()

    assert run()["events"] == 1
    world.append([("a", 2, "u")])
    assert run()["batches"] == []
    assert seen == [[(1,)]]
    unread = dict(weir.query("SELECT reader_group || stream, unread_events FROM lag"))
    assert unread[f"both{world.stream}"] == 0
    assert unread[f"others{world.stream}"] == 2
    with raises("group_unsuitable deliver"):
        weir.consumer("others", function, "stream:s/out", adjuncts=(store.name,)).run()


@pytest.mark.release
def test_a_store_of_the_consumers_own_output_is_pinned_or_refused(
    weir: Installation, world: World
) -> None:
    out = World(weir, stream_name("s/out"))
    weir.put(EVENTS, [("a", 1)])
    store = out.store(WAYS["number"], bootstrap="tail")

    def count(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
        before = adjuncts[store.name].agg(F.count("*").alias("n"))
        return events.select("k").crossJoin(before)

    consumer = weir.consumer("readers", count, "stream:s/out", adjuncts=(store.name,))
    with raises("group_unsuitable complete"):
        consumer.run()
    update_store(weir.database, store.name, {"bootstrap": "batch"}, {}, request_id=unique("b"))
    consumer.run()
    weir.put(EVENTS, [("a", 2)])
    consumer.run()
    # The second batch sees what the first one has written, and no batch sees what it writes.
    assert list(weir.facts(stream_name("s/out")).sort_values("_clock")["n"]) == [0, 1]


class EvenOnly(AdjunctStoreManager):
    """Delivers events with an even number, and shows keys before `b`."""

    def delivered(self, stream: str, events: DataFrame) -> DataFrame:
        return events.where("n % 2 = 0")

    def stored(self, store: str, rows: DataFrame) -> DataFrame:
        return rows.where("_weir_key < 'b'")


@pytest.mark.release
def test_a_manager_decides_what_is_delivered_and_what_is_seen(
    weir: Installation, world: World
) -> None:
    store = world.store(WAYS["whole"], history=LONG)
    world.append([("a", 1, "u"), ("b", 2, "u")])
    weir.put(EVENTS, [(k, n) for n in range(2) for k in "ab"])

    def check(batch: OpenBatch[DataFrame]) -> None:
        for as_of in (True, False):
            joined = batch.enrich(batch.events, store.name, "k", as_of=as_of, prefix="v_")
            assert rows(joined.select("k", "n", "v_n")) == [("a", 0, 1), ("b", 0, None)]

    with reading(weir, store, manager=EvenOnly) as reader:
        for batch in reader:
            check(batch)
            batch.commit()
    assert weir.value("SELECT unread_events FROM lag WHERE reader_group = 'readers'") == 0
    with raises("argument_invalid manager"), reading(weir, store, manager=dict):
        pass


@pytest.mark.release
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
                batch.events, store.name, "k", as_of=column, valid_from="hour", prefix="v_"
            )
            assert rows(joined.select("n", "v_n")) == [(0, None), (1, 1), (2, 2), (3, 3), (4, 3)]
        # Without it, a value holds from its commit on: long after 2013.
        joined = batch.enrich(batch.events, store.name, "k", as_of="hour", prefix="v_")
        assert rows(joined.select("v_n").distinct()) == [(None,)]


def test_wrong_joins_are_refused(weir: Installation, world: World) -> None:
    world.append([("a", 1, "u")])
    weir.put(EVENTS, [("a", 1)])
    store, other = world.store(WAYS["number"]), world.store(WAYS["whole"], history=LONG)
    with raises("argument_invalid store"), reading(weir, store, store):
        pass
    with reading(weir, store, other) as reader:
        batch = next(reader)
        events = batch.events
        events = events.withColumn("nN", F.lit(1)).withColumn("k.1", F.col("k"))
        found = batch.enrich(events, other.name, "k.1", prefix="v_")
        assert rows(found.select("v_n")) == [(1,)]
        refused: dict[str, dict[str, Any]] = {
            "join_invalid adjuncts": {"name": "s/none"},
            "column_type_unsupported type": {"name": store.name},
            "join_invalid both": {"name": other.name},
            "join_invalid history": {"name": store.name, "as_of": True},
            "column_type_unsupported needs": {"name": other.name, "as_of": "n"},
            "join_invalid them": {"name": other.name, "on": "nothing"},
            "argument_invalid": {"name": other.name, "how": "full"},
        }
        for code, arguments in refused.items():
            with raises(code):
                batch.enrich(
                    events, **{"on": "k", "prefix": "N" if "both" in code else "v_", **arguments}
                )
        with raises("argument_invalid"):
            batch.enrich(events, other.name, "k", valid_from="n")
        # An event without a key finds nothing, and stays.
        for as_of in (True, False):
            nothing = F.lit(None).cast("string")
            joined = batch.enrich(events, other.name, nothing, as_of=as_of, prefix="v_")
            assert rows(joined.select("n", "v_n")) == [(1, None)]
        # A number finds keys of another type of numbers; one that does not fit finds none.
        for on, value in ((F.lit(1).cast("tinyint"), "a"), (F.lit(2.0**70), None)):
            joined = batch.enrich(events, store.name, on)
            assert rows(joined.select("value")) == [(value,)]


@pytest.mark.release
def test_consumers_name_their_stores(weir: Installation, world: World) -> None:
    store = world.store(WAYS["whole"])
    with raises("argument_invalid parameter"):
        weir.consumer("readers", lambda events: events, "stream:s/out", adjuncts=(store.name,))
    with raises("argument_invalid parameter"):
        weir.consumer("readers", lambda events, adjuncts: events, "stream:s/out",
                      parameters={"adjuncts": 1})  # fmt: skip
    with raises("adjunct_store_not_found"):
        weir.consumer("readers", lambda events, adjuncts: events, "stream:s/out",
                      adjuncts=("s/none",)).run()  # fmt: skip
