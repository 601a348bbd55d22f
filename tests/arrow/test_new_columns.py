"""A column that a stream does not have is added with a word, or refused with the closest name;
one that the rows do not have is named (semantics 12.4)."""

import logging
from typing import Any

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.world.streams import Lane
from weir.controller.streams import schema_by_id
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.new_columns import Fitting, combine, fitting
from weir.model.schema import Field, new_field
from weir.programs.opening import shared
from weir.settings import Settings

ORDERS = [
    new_field(name, kind)
    for name, kind in (("key", "string"), ("amount", "long"), ("city", "string"))
]


def given(*names: str, kind: str = "long") -> list[Field]:
    known = {one["name"]: one for one in ORDERS}
    return [known.get(n, {**ORDERS[0], "name": n, "type": kind}) for n in names]


@pytest.mark.parametrize(
    ("names", "kind", "says"),
    [
        (("key", "amuont", "city"), "long", "'amuont' s/s closest 'amount' on_new_column"),
        (("key", "amount", "amuont"), "long", "'amuont' closest 'amount'"),  # beside it
        (("key", "CITTY", "amount"), "string", "'CITTY' closest 'city'"),  # in another case
        (("key", "x1", "amuont"), "long", "'x1' 1 more"),  # the first of several
        (("key", "amuont"), "void", "'amuont' closest 'amount'"),  # without any value
        (("zzzzzz", "key"), "long", "'zzzzzz' more_columns"),  # which is like none
    ],
)
def test_a_new_column_is_refused_with_the_closest_name(
    names: tuple[str, ...], kind: str, says: str
) -> None:
    with raises(f"column_unknown {says}"):
        fitting("s/s", ORDERS, given(*names, kind=kind), "refuse")


def test_a_name_that_is_like_no_other_is_refused_without_a_guess() -> None:
    with raises("column_unknown 'zzzzzz'") as refused:
        fitting("s/s", ORDERS, given("zzzzzz", "key"), "refuse")
    assert "closest" not in refused.value.sentence


def test_a_new_column_is_added_with_a_line_that_asks_what_it_is() -> None:
    found = fitting("s/s", ORDERS, given("key", "amuont", "gate"), "add")
    assert [field["name"] for field in found.fields] == ["key", "amount", "city", "amuont", "gate"]
    assert (found.added, found.missing) == (("amuont", "gate"), ("amount", "city"))
    assert found.new == (
        "column 'amuont' is new in stream s/s (long); is it a misspelt 'amount', which the rows "
        "do not have?",
        "column 'gate' is new in stream s/s (long), and null in its earlier events",
    )


def test_a_new_column_without_a_value_is_left_out_with_a_line() -> None:
    found = fitting("s/s", ORDERS, given("key", "amuont", "city", kind="void"), "add")
    assert (found.fields, found.added, found.missing) == (ORDERS, (), ("amount",))
    assert found.new[0].startswith("column 'amuont' is new in stream s/s, and left out")


def test_many_new_columns_are_named_in_few_lines() -> None:
    found = fitting("s/s", ORDERS, given("key", *(f"c{i}" for i in range(5_000))), "add")
    assert (len(found.added), len(found.new)) == (5_000, 21)
    assert found.new[-1] == "4,980 more columns are new in stream s/s"


@pytest.mark.parametrize("setting", ["refuse", "add"])
def test_the_first_append_gives_the_columns_and_says_nothing(setting: str) -> None:
    assert fitting("s/s", None, ORDERS, setting) == Fitting(ORDERS)
    assert fitting("s/s", ORDERS, ORDERS, setting) == Fitting(ORDERS)


def test_the_streams_of_rejected_rows_take_what_weir_writes() -> None:
    found = fitting("s/s.rejected", ORDERS, given("key", "amuont"), "refuse")
    assert [field["name"] for field in found.fields] == ["key", "amount", "city", "amuont"]
    assert (found.new, found.missing) == ((), ())


def test_what_two_first_appends_wrote_is_combined_only_where_columns_may_be_new() -> None:
    both = combine("s/s", ORDERS, given("key", "amuont"), "add")
    assert [field["name"] for field in both][3:] == ["amuont"]
    with raises("schema_changed 'amuont' closest 'amount'"):
        combine("s/s", ORDERS, given("key", "amuont"), "refuse")


def append(lane: Lane, settings: Settings, **columns: list[Any]) -> Any:
    batch = str(lane.value("SELECT count(*) FROM transaction"))
    return shared(settings).append(str(lane.name), pa.table(columns), writer_id="w", batch_id=batch)


def setting(lane: Lane) -> Any:
    return lane.value(
        "SELECT on_new_column FROM weir.stream_configuration WHERE stream = :stream",
        stream=str(lane.name),
    )


def columns(lane: Lane) -> list[str]:
    fields = lane.database.snapshot(lambda c: schema_by_id(c, lane.stream_id))
    return [field["name"] for field in fields]


@pytest.mark.parametrize(
    ("fields", "given", "then"),
    [
        (ORDERS, "automatic", "refuse"), (None, "automatic", "add"),
        (ORDERS, "add", "add"), (None, "refuse", "refuse"),
    ],
)  # fmt: skip
def test_declared_columns_are_all_unless_the_setting_says_otherwise(
    database: Database, settings: Settings, fields: Any, given: str, then: str
) -> None:
    lane = Lane.made(database, fields=fields, on_new_column=given)
    assert setting(lane) == then
    append(lane, settings, key=["a"], amount=[1], city=["x"])
    if then == "refuse":
        with raises("column_unknown 'amuont' 'amount'"):
            append(lane, settings, key=["a"], amuont=[1])
        assert columns(lane) == ["key", "amount", "city"]
    else:
        append(lane, settings, key=["a"], amuont=[1])
        assert columns(lane) == ["key", "amount", "city", "amuont"]


def test_an_append_says_what_it_adds_and_lacks(
    database: Database, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "weir.columns")
    lane = Lane.made(database)
    done = append(lane, settings, key=["a"], amount=[1])
    assert not {"added_columns", "missing_columns"} & set(done.report())
    assert not caplog.records
    done = append(lane, settings, key=["a"], amuont=[1]).report()
    assert (done["added_columns"], done["missing_columns"]) == (["amuont"], ["amount"])
    added, missing = caplog.records
    assert "is it a misspelt 'amount'" in added.getMessage()
    assert added.levelname == "WARNING"
    assert "do not have column 'amount'" in missing.getMessage()
    assert missing.levelname == "INFO"


def test_a_column_that_is_given_by_name_is_added_to_a_stream_that_refuses_new_ones(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, fields=ORDERS)
    update_stream(database, lane.name, {}, fields=given("gate"), request_id="gate")
    append(lane, settings, key=["a"], gate=[1])
    assert (columns(lane)[3:], setting(lane)) == (["gate"], "refuse")
    with raises("column_unknown 'x'"):
        append(lane, settings, key=["a"], x=[1])


def test_the_setting_can_be_changed_and_automatic_changes_nothing(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, fields=ORDERS)
    for wanted, then in (("automatic", "refuse"), ("add", "add"), ("automatic", "add")):
        update_stream(database, lane.name, {"on_new_column": wanted}, request_id=f"{wanted} {then}")
        assert setting(lane) == then
    with raises("argument_invalid on_new_column 'drop'"):
        update_stream(database, lane.name, {"on_new_column": "drop"}, request_id="drop")
    append(lane, settings, key=["a"], x=[1])
