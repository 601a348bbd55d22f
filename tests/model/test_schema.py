"""The schema of a stream may gain nullable columns; whatever else differs is refused by name."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raises import raises
from weir.errors import InvalidInput
from weir.model.names import check_user_columns
from weir.model.new_columns import combine, fitted
from weir.model.schema import Field, Kind, merge, same_type, show, wider


def column(name: str, kind: Kind = "string", nullable: bool = True) -> Field:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}


def struct(*fields: Field) -> Kind:
    return {"type": "struct", "fields": list(fields)}


def array(of: Kind, contains_null: bool = True) -> Kind:
    return {"type": "array", "elementType": of, "containsNull": contains_null}


def test_the_first_append_gives_the_schema_with_all_columns_nullable() -> None:
    given = [column("a", "long", nullable=False), column("b")]
    assert merge("s/s", None, given) == [column("a", "long"), column("b")]


def test_new_columns_come_at_the_end_and_are_nullable() -> None:
    current = [column("a", "long")]
    given = [column("x", "date", nullable=False), column("a", "long"), column("y")]
    assert merge("s/s", current, given) == [column("a", "long"), column("x", "date"), column("y")]
    assert current == [column("a", "long")]


def test_another_type_is_refused_naming_the_column_and_both_types() -> None:
    with raises("column_type_differs 'a' string long s/s"):
        merge("s/s", [column("a", "long")], [column("a", "string")])


def test_a_type_is_the_same_whether_or_not_parts_of_it_may_be_null() -> None:
    loose = struct(column("x", array("long")))
    strict = struct(column("x", array("long", contains_null=False), nullable=False))
    assert same_type(loose, strict)
    assert merge("s/s", [column("a", loose)], [column("a", strict)]) == [column("a", loose)]
    assert not same_type(loose, struct(column("x", array("integer"))))
    assert not same_type(loose, struct(column("y", array("long"))))
    assert not same_type("decimal(10,2)", "decimal(10,3)")


def test_a_column_that_may_not_be_null_may_not_be_missing() -> None:
    declared = [column("a", "long", nullable=False), column("b")]
    with raises("column_missing 'a' s/s"):
        merge("s/s", declared, [column("b")])


def test_a_column_that_differs_in_case_only_is_refused() -> None:
    with raises("columns_invalid 'TailNum' 'tailnum' s/s case"):
        merge("s/s", [column("tailnum")], [column("TailNum")])


def test_rows_that_share_no_column_with_the_stream_are_refused() -> None:
    with raises("column_unknown x, y"):
        merge("s/s", [column("a")], [column("x"), column("y")])


def test_rows_without_columns_are_refused() -> None:
    with raises("columns_invalid"):
        merge("s/s", None, [])


@pytest.mark.parametrize("name", ["_segment", "_OFFSET", "_Clock", "_metadata", "_weir_x", "_WEIR"])
def test_reserved_names_are_refused_in_any_case(name: str) -> None:
    with raises(f"columns_invalid '{name}'"):
        merge("s/s", None, [column("a"), column(name)])


def test_names_that_occur_twice_are_refused_in_any_case() -> None:
    with raises("columns_invalid 'A' twice"):
        merge("s/s", None, [column("a"), column("A")])


def test_columns_that_two_appends_added_at_once_are_all_kept() -> None:
    base = [column("a")]
    first = combine("s/s", base, [*base, column("x")])
    assert combine("s/s", first, [*base, column("y", "date")]) == [
        column("a"), column("x"), column("y", "date"),
    ]  # fmt: skip


def test_two_appends_that_added_one_column_with_two_types_conflict() -> None:
    first = combine("s/s", [column("a")], [column("a"), column("x", "long")])
    with raises("schema_changed 'x'"):
        combine("s/s", first, [column("a"), column("x", "string")])


kinds = st.sampled_from(["string", "long", "date"])
schemas = st.dictionaries(st.sampled_from("abcdef"), kinds, min_size=1).map(
    lambda d: [column(name, kind) for name, kind in d.items()]
)


@given(schemas, schemas)
def test_a_schema_only_grows(current: list[Field], given_: list[Field]) -> None:
    known = {field["name"]: field["type"] for field in current}
    try:
        merged = merge("s/s", current, given_)
    except InvalidInput:
        shared = [f for f in given_ if f["name"] in known]
        assert not shared or any(f["type"] != known[f["name"]] for f in shared)
        return
    assert merged[: len(current)] == current
    assert {f["name"] for f in merged} == known.keys() | {f["name"] for f in given_}
    assert merge("s/s", merged, given_) is merged


def test_a_type_is_shown_as_a_person_reads_it() -> None:
    assert show("decimal(10,2)") == "decimal(10,2)"
    assert show(struct(column("x"))) == "struct<x: string>"


def test_ten_thousand_columns_are_checked_at_once() -> None:
    fields = [column(f"Column {i}", "long") for i in range(10_000)]
    begun = time.process_time()  # whatever else the machine does
    check_user_columns([field["name"] for field in fields])
    first = merge("s/s", None, fields)
    assert merge("s/s", first, fields) is first
    assert time.process_time() - begun < 5


def decimal(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        ("byte", "long", "long"),
        ("integer", "short", "integer"),
        ("float", "double", "double"),
        ("void", "string", "string"),
        (decimal(5, 2), decimal(20, 3), decimal(20, 3)),
        (decimal(20, 0), decimal(20, 18), decimal(38, 18)),
        (decimal(38, 0), decimal(38, 18), None),
        ("long", "double", None),
        ("integer", "string", None),
        ("timestamp", "timestamp_ntz", None),
        (array("void"), array(array("date")), array(array("date"))),
        (array("integer"), "integer", None),
        (struct(column("x", "void")), struct(column("x", "date")), struct(column("x", "date"))),
        (struct(column("x")), struct(column("y")), None),
        (struct(column("x")), struct(column("x"), column("y")), None),
    ],
)
def test_the_wider_of_two_types_holds_all_values_of_both(a: Any, b: Any, both: Any) -> None:
    for found in (wider(a, b), wider(b, a)):
        assert found == both if both is None else same_type(found, both)


def test_a_column_without_a_type_is_left_open_until_one_comes() -> None:
    first = fitted("s/s", None, [column("k"), column("x", "void"), column("y", array("void"))])
    assert first == [column("k")]
    then = fitted("s/s", first, [column("k"), column("x", "date"), column("y", array("long"))])
    assert then == [column("k"), column("x", "date"), column("y", array("long"))]
    assert fitted("s/s", then, [column("x", "void"), column("y", array("void"))]) is then
    with raises("columns_invalid s/s"):
        fitted("s/s", None, [column("x", "void")])


def test_rows_of_a_narrower_type_fit_and_those_of_a_wider_one_are_refused() -> None:
    current = [column("n", "integer")]
    assert fitted("s/s", current, [column("n", "short")]) is current
    with raises("column_type_differs 'n' long integer"):
        fitted("s/s", current, [column("n", "long")])
    with raises("schema_changed"):  # what was written has the type that was planned
        combine("s/s", current, [column("n", "short")])


@pytest.mark.parametrize(
    "kind",
    ["void", "char(3)", "varchar(3)", "time(6)", "interval", "interval day to second",
     "geometry(4326)", {"type": "udt", "pyClass": "os.X", "sqlType": "long"}],
)  # fmt: skip
def test_types_that_streams_do_not_have_are_refused_at_any_depth(kind: Any) -> None:
    map_: Kind = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
    for whole in (kind, array(kind), struct(column("a", kind)), map_):
        with raises("column_type_unsupported 'x' cast"):
            merge("s/s", None, [column("x", whole)])


def test_names_within_a_column_may_not_differ_in_case_only() -> None:
    twins = struct(column("a"), column("A"))
    for whole in (twins, array(twins), struct(column("b", twins))):
        with raises("columns_invalid 'x' twice"):
            merge("s/s", None, [column("x", whole)])


def test_texts_with_a_collation_are_refused() -> None:
    collated: Field = {**column("x"), "metadata": {"__COLLATIONS": {"x": "icu.UNICODE_CI"}}}
    with raises("column_type_unsupported 'x' collate"):
        merge("s/s", None, [collated])
