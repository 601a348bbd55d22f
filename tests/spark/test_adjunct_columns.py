"""Adjunct stores go on while the columns of their stream change: versions have what the events
have, under the names of their time (semantics 5.5)."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.raises import raises
from tests.spark.adjunct_world import Store, Way, World
from tests.spark.installation import Installation
from tests.world.columns import column
from tests.world.streams import unique
from weir.adjunct.lookup import look_up
from weir.adjunct.versions import AdjunctVersion
from weir.arrow.stores import rows_of
from weir.consumers.column_users import allowing
from weir.controller.update import update_stream
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.column_changes import ColumnChanges
from weir.spark.adjuncts.read import current_frame, history_frame

pytestmark = pytest.mark.release
WHOLE, DAY = AdjunctDefinition(), date(2024, 1, 1)
NUMBERS = AdjunctDefinition(key="k", value="m, n")


def way(definition: AdjunctDefinition) -> Way:
    return Way(definition, lambda event: event.k, lambda event: None)


def append(world: World, columns: str, *rows: Any) -> None:
    world.weir.append(world.stream, world.weir.spark.createDataFrame(list(rows), columns))


def change(world: World, **changes: Any) -> list[str]:
    done = update_stream(
        world.weir.database, world.stream, {}, column_changes=ColumnChanges(**changes),
        allowing=allowing(True, ()), request_id=unique("change"),
    )  # fmt: skip
    return list(done["named_by"])


def held(store: Store, version: AdjunctVersion) -> list[dict[str, Any]]:
    """The table of a version by Spark, after pyarrow and a lookup have found the same."""
    weir = store.world.weir
    frame = current_frame(weir.spark, weir.settings.warehouse, version)
    found: list[dict[str, Any]] = frame.sort("_weir_key").toArrow().to_pylist()
    paths = [file.path for file in version.files]
    known = rows_of(weir.opened, version.fields, paths).sort_by("_weir_key").to_pylist()
    assert found == known
    for row in found:
        key = row.pop("_weir_key")
        args = weir.database, weir.settings.warehouse, store.name, key, version.version
        assert look_up(*args) == row
        del row["_clock"]
    return found


def test_stores_follow_renames_drops_swaps_and_wider_types(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    append(world, "k string, n int, op string", ("a", 1, "u"), ("b", 2, "v"))
    whole = world.store(way(WHOLE), history=86400)
    part = world.store(way(AdjunctDefinition(value="upper(k) AS k")))
    first, before = whole.build(), part.build()
    said = change(
        world, rename={"n": "m"}, drop=["op"], add=[column("n", "long")],
        widen=[column("n", "long")],
    )  # fmt: skip
    assert [one.split(",")[0] for one in said] == [f"adjunct store {whole.name} keeps all columns"]
    append(world, "k string, m long, n long", ("b", 1 << 40, 20), ("c", 3, 30))
    second = whole.build()
    assert held(whole, second) == [
        {"k": "a", "m": 1, "n": None}, {"k": "b", "m": 1 << 40, "n": 20},
        {"k": "c", "m": 3, "n": 30},
    ]  # fmt: skip
    assert held(whole, first) == [{"k": "a", "n": 1, "op": "u"}, {"k": "b", "n": 2, "op": "v"}]
    past = history_frame(weir.spark, weir.database, weir.settings.warehouse, second, first.clock)
    assert {tuple(row) for row in past.select("k", "m", "n").collect()} == {
        ("a", 1, None), ("b", 2, None), ("b", 1 << 40, 20), ("c", 3, 30),
    }  # fmt: skip
    assert held(part, part.build()) == [{"k": "A"}, {"k": "B"}, {"k": "C"}]
    assert before.fields == part.build().fields

    part.redefine(way(NUMBERS))  # of the events that it has kept, under the names of now
    numbers: list[dict[str, Any]] = [
        {"m": 1, "n": None},
        {"m": 1 << 40, "n": 20},
        {"m": 3, "n": 30},
    ]
    converted = part.build()
    assert held(part, converted) == numbers
    change(world, rename={"m": "n", "n": "m", "k": "key"})
    append(world, "key string, m long, n long", ("d", 4, 40))
    followed = part.build()  # whose columns are called as before
    assert held(part, followed) == [*numbers, {"m": 40, "n": 4}]
    said = change(world, drop=["m"])
    assert f"adjunct store {part.name} is outdated, because column 'm'" in "; ".join(said)
    append(world, "key string, n long", ("e", 5))
    with raises("adjunct_definition_invalid 'm' dropped update_adjunct_store names"):
        part.build()
    assert held(part, followed) == [*numbers, {"m": 40, "n": 4}], "what is built stays"
    part.redefine(way(AdjunctDefinition(key="key", value="n AS m")))
    assert held(part, part.build())[-2:] == [{"m": 40}, {"m": 5}]
    assert held(whole, whole.build())[0] == {"key": "a", "n": 1}


def test_a_store_has_the_values_of_old_and_new_events_in_the_widest_type(
    weir: Installation,
) -> None:
    world = World.made(weir, segments=1)
    append(world, "k string, n int, d date, l array<int>", ("a", 1, DAY, [1, None]),
           ("b", 2, None, None))  # fmt: skip
    whole = world.store(way(WHOLE), history=86400)
    first = whole.build()
    wide = {"n": "decimal(12,2)", "d": "timestamp_ntz", "l": "array<decimal(22,2)>"}
    change(world, widen=[column(name, kind) for name, kind in wide.items()])
    kinds = "k string, n decimal(12,2), d timestamp_ntz, l array<decimal(22,2)>"
    half = Decimal("1.50")
    append(world, kinds, ("b", half, datetime(2024, 1, 1, 1), [half]), ("c", half, None, []))
    second = whole.build()
    assert held(whole, second) == [
        {"k": "a", "n": Decimal(1), "d": datetime(2024, 1, 1), "l": [Decimal(1), None]},
        {"k": "b", "n": half, "d": datetime(2024, 1, 1, 1), "l": [half]},
        {"k": "c", "n": half, "d": None, "l": []},
    ]
    past = history_frame(weir.spark, weir.database, weir.settings.warehouse, second, first.clock)
    assert sorted(row.n for row in past.collect()) == [1, half, half, 2]
    again = world.store(way(WHOLE))
    assert held(again, again.build()) == held(whole, second), "built anew it is the same"


def test_an_event_that_fails_is_rejected_under_the_names_of_now(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    append(world, "k string, n string", ("a", "1"))
    numbers = AdjunctDefinition(value="cast(n as int)")
    store = world.store(way(numbers), on_error="quarantine")
    change(world, rename={"k": "n", "n": "k"})
    store.redefine(way(AdjunctDefinition(value="cast(k as int)")))
    append(world, "n string, k string", ("b", "x"))
    store.build()
    [rejected] = weir.frame(world.stream.rejected).select(F.col("row")).collect()
    assert rejected.row == '{"n":"b","k":"x"}'
