"""What may change in the columns of a stream: names, types, drops, and what follows (semantics
5.5)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.raises import raises
from weir.model.column_changes import (
    ColumnChanges,
    columns_at,
    followed,
    holds,
    typed_before,
)
from weir.model.new_columns import combine
from weir.model.schema import Field, Kind, merge, new_field, stored_name
from weir.model.stream_configuration import Configuration


def field(name: str, kind: Kind = "long", **more: Any) -> Field:
    made = new_field(name, kind)
    made.update(more)  # type: ignore[typeddict-item]
    return made


ABC = [field("a", "string"), field("b", "integer"), field("c", "float")]


def names(fields: list[Field]) -> list[tuple[str, str]]:
    return [(one["name"], stored_name(one)) for one in fields]


def applied(fields: list[Field], dropped: list[str], **changes: Any) -> tuple[list[Field], Any]:
    return ColumnChanges(**changes).applied("s/s", fields, dropped)


def test_a_column_keeps_its_name_in_files_and_no_other_gets_it() -> None:
    renamed, gone = applied(ABC, [], rename={"a": "z"})
    assert (names(renamed)[0], gone) == (("z", "a"), [])
    added, _ = applied(renamed, gone, add=[field("A")])
    assert names(added)[3] == ("A", "A#2"), "Spark finds a column in any case of its letters"
    dropped, gone = applied(added, [], drop=["A", "b"])
    assert gone == ["A#2", "b"] or gone == ["b", "A#2"]
    again, _ = applied(dropped, gone, add=[field("B"), field("a")])
    assert names(again)[2:] == [("B", "B#2"), ("a", "a#3")]
    back, _ = applied(renamed, [], rename={"z": "a"})
    assert back == ABC


def test_two_columns_may_swap_their_names() -> None:
    swapped, _ = applied(ABC, [], rename={"a": "b", "b": "a"})
    assert names(swapped) == [("b", "a"), ("a", "b"), ("c", "c")]
    assert [one["type"] for one in swapped] == ["string", "integer", "float"]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"drop": ["x"]}, "column_unknown 'x'"),
        ({"rename": {"x": "y"}}, "column_unknown 'x'"),
        ({"drop": ["a"], "rename": {"a": "y"}}, "argument_invalid 'a'"),
        ({"rename": {"a": "y", "b": "y"}}, "argument_invalid column"),
        ({"rename": {"a": "B"}}, "columns_invalid twice"),
        ({"rename": {"a": "_weir_a"}}, "columns_invalid column"),
        ({"drop": ["a", "b", "c"]}, "columns_invalid no column left"),
        ({"widen": [field("a", "long")]}, "change_impossible 'a' string long exactly"),
        ({"widen": [field("b", "short")]}, "change_impossible 'b' integer short exactly"),
        ({"add": [field("b", "string")]}, "column_type_differs 'b'"),
        ({"add": [field("b", "integer", default="7")]}, "change_impossible 'b' '7' none changes"),
    ],
)
def test_what_is_no_change_is_refused(changes: dict[str, Any], wanted: str) -> None:
    with raises(wanted):
        applied(ABC, [], **changes)


@pytest.mark.parametrize(
    ("narrow", "wide", "held"),
    [
        ("byte", "long", True), ("integer", "long", True), ("long", "integer", False),
        ("float", "double", True), ("long", "double", False), ("integer", "double", False),
        ("decimal(5,2)", "decimal(7,4)", True), ("decimal(5,2)", "decimal(6,4)", False),
        ("byte", "decimal(10,0)", True), ("byte", "decimal(9,0)", False),
        ("short", "decimal(12,2)", True), ("short", "decimal(11,2)", False),
        ("integer", "decimal(38,28)", True), ("integer", "decimal(38,29)", False),
        ("long", "decimal(20,0)", True), ("long", "decimal(19,0)", False),
        ("long", "decimal(38,18)", True), ("long", "decimal(38,19)", False),
        ("decimal(20,0)", "long", False), ("float", "decimal(38,10)", False),
        ("double", "decimal(38,10)", False), ("decimal(5,2)", "double", False),
        ("date", "timestamp_ntz", True), ("date", "timestamp", False), ("string", "binary", False),
    ],
)  # fmt: skip
def test_a_wider_type_holds_all_values_also_within_others(
    narrow: str, wide: str, held: bool
) -> None:
    assert holds(wide, narrow) is held
    made: list[Callable[[Kind], Kind]] = [
        lambda one: {"type": "array", "elementType": one, "containsNull": True},
        lambda one: {"type": "map", "keyType": one, "valueType": one, "valueContainsNull": True},
        lambda one: {"type": "struct", "fields": [field("x", one)]},
    ]
    for of in made:
        assert holds(of(wide), of(narrow)) is held
        assert not holds(of(wide), narrow)


def test_a_column_with_a_default_becomes_no_decimal_whose_defaults_spark_does_not_read() -> None:
    added, _ = applied(ABC, [], add=[field("d", "integer", default="7")])
    wide, _ = applied(added, [], widen=[field("d", "decimal(18,8)")])
    assert (wide[3]["type"], wide[3]["default"]) == ("decimal(18,8)", "7")
    for kind in ("decimal(19,9)", "decimal(38,28)"):
        with raises("change_impossible 'd' '7' 18"):
            applied(added, [], widen=[field("d", kind)])


def configuration(key: str, time: str | None = None) -> Configuration:
    return Configuration(key, event_time=time)


def followed_by(key: str, time: str | None = None, new_time: bool = False, **changes: Any) -> Any:
    types = {one["name"]: one["type"] for one in [*ABC, field("d", "date"), field("e f")]}
    found = followed(
        "s/s", configuration(key, time), ColumnChanges(**changes), types, new_time=new_time
    )
    return found.routing_key, found.event_time


def test_a_key_and_an_event_time_that_are_columns_follow_them() -> None:
    assert followed_by("a", "d", rename={"a": "x", "d": "e"}) == ("x", "e")
    assert followed_by("A", rename={"a": "x y"}) == ("`x y`", None)
    assert followed_by("concat(b, c)", "d", rename={"a": "x"}) == ("concat(b, c)", "d")
    assert followed_by("concat(a, '-', B)", "to_date(a, 'yyyy')", rename={"a": "b", "b": "a"}) == (
        "concat(b, '-', a)", "to_date(b, 'yyyy')",
    )  # fmt: skip
    assert followed_by("concat(b, '-')", widen=[field("b", "long")])[0] == "concat(b, '-')"
    assert followed_by("b", "d", widen=[field("b", "long"), field("d", "timestamp_ntz")]) == (
        "b", "d",
    )  # fmt: skip
    assert followed_by("a", "date(d)", widen=[field("d", "timestamp_ntz")])[1] == "date(d)"
    assert followed_by("a", "e", new_time=True, rename={"d": "e"}) == ("a", "e")


@pytest.mark.parametrize(
    ("key", "time", "changes"),
    [
        ("a", None, {"drop": ["a"]}),
        ("concat(a, b)", None, {"drop": ["a"]}),
        ("lower(d)", None, {"widen": [field("d", "timestamp_ntz")]}),
        ("c", None, {"widen": [field("c", "double")]}),  # 0.1 has another text
        ("d", None, {"widen": [field("d", "timestamp_ntz")]}),
        ("b", None, {"widen": [field("b", "decimal(10,0)")]}),
        ("a", "timestamp_millis(b)", {"widen": [field("b", "decimal(10,0)")]}),
        ("a", "concat(d, 'T', a)", {"widen": [field("d", "timestamp_ntz")]}),  # "... 00:00:00T..."
        ("a", "date(coalesce(d, d))", {"widen": [field("d", "timestamp_ntz")]}),
        ("a", "d", {"drop": ["d"]}),
        ("Z", None, {"add": [{**field("z"), "default": "x"}]}),  # no event has the column so far
        ("z", None, {"rename": {"a": "z"}}),
    ],
)
def test_what_would_give_a_key_or_an_event_time_another_meaning_is_refused(
    key: str, time: str | None, changes: dict[str, Any]
) -> None:
    with raises("change_impossible column"):
        followed_by(key, time, **changes)


def test_an_append_that_began_before_a_change_is_committed_only_if_its_files_still_fit() -> None:
    renamed, gone = applied(ABC, [], rename={"a": "z"})
    with raises("schema_changed 'a'"):
        combine("s/s", renamed, ABC, "add", gone)
    fewer, gone = applied(ABC, [], drop=["b"])
    with raises("schema_changed 'b'"):
        combine("s/s", fewer, ABC, "add", gone)
    wider, gone = applied(ABC, [], widen=[field("b")])
    with raises("schema_changed 'b'"):
        combine("s/s", wider, ABC, "add", gone)
    swapped, gone = applied(ABC, [], rename={"a": "b", "b": "a"})
    with raises("schema_changed"):
        combine("s/s", swapped, ABC, "add", gone)
    more, gone = applied(ABC, [], add=[field("d", default="7")])
    with raises("schema_changed 'd'"):
        combine("s/s", more, ABC, "add", gone)
    more, gone = applied(ABC, [], add=[field("d")])
    assert combine("s/s", more, ABC, "add", gone) == more
    both = merge("s/s", ABC, [*ABC, field("e")])
    assert names(combine("s/s", more, both, "add", gone))[3:] == [("d", "d"), ("e", "e")]
    upper, gone = applied(merge("s/s", ABC, [*ABC, field("E")]), [], rename={"E": "z"})
    with raises("schema_changed 'e'"):  # its files have an e, which no column but z may read
        combine("s/s", upper, both, "add", gone)


def test_an_older_version_has_its_names_and_the_widest_types() -> None:
    second, _ = applied(ABC, [], rename={"a": "z"}, widen=[field("b", "long")])
    third, _ = applied(second, [], drop=["b"])
    found = columns_at([ABC, second, third], 1)
    assert [(one["name"], one["type"]) for one in found] == [
        ("a", "string"), ("b", "long"), ("c", "float"),
    ]  # fmt: skip


def test_what_was_written_earlier_is_read_with_the_types_of_its_time() -> None:
    second, _ = applied(ABC, [], rename={"c": "z"})
    third, _ = applied(second, [], widen=[field("z", "double"), field("b", "long")])
    fourth, _ = applied(third, [], add=[field("d")])
    versions = [(10, ABC), (20, second), (30, third), (40, fourth)]
    [(until, then)] = typed_before(versions)
    assert until == 30
    assert [(one["name"], one["type"]) for one in then] == [
        ("a", "string"), ("b", "integer"), ("z", "float"), ("d", "long"),
    ]  # fmt: skip
    assert typed_before(versions[2:]) == typed_before([]) == []
