"""Columns that people declare are read, or refused in one sentence."""

import pytest

from tests.raises import raises
from weir.model.declared_columns import declared_columns


def test_columns_are_read_with_their_types_at_any_depth() -> None:
    found = declared_columns(
        "k STRING, `a.b` bigint COMMENT 'it''s', xs ARRAY<MAP<STRING, STRUCT<a: INT, b DEC(10,2)>>>"
    )
    inner = [
        {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "b", "type": "decimal(10,2)", "nullable": True, "metadata": {}},
    ]
    of = {"type": "map", "keyType": "string", "valueContainsNull": True,
          "valueType": {"type": "struct", "fields": inner}}  # fmt: skip
    assert found == [
        {"name": "k", "type": "string", "nullable": True, "metadata": {}},
        {"name": "a.b", "type": "long", "nullable": True, "metadata": {"comment": "it's"}},
        {"name": "xs", "type": {"type": "array", "elementType": of, "containsNull": True},
         "nullable": True, "metadata": {}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("k STRING COMMENT '${env:HOME}'", "columns_invalid '${'"),
        ("k STRING n LONG", "columns_invalid read 'n'"),
        ("k NUMBERS", "columns_invalid read NUMBERS"),
        ("STRUCT<k: STRING", "columns_invalid read"),
        ("k STRING NOT NULL", "columns_invalid 'k' NOT NULL"),
        ("k STRING DEFAULT 'x'", "columns_invalid read default"),
        ("INT", "columns_invalid read type"),
        ("k DECIMAL(39)", "columns_invalid read digits"),
        ("k DECIMAL(2,3)", "columns_invalid read digits"),
        ("k STRING,", "columns_invalid read end"),
        ("))(", "columns_invalid read"),
        ("k STRING COMMENT 'x", "columns_invalid read"),
        ("k " + "ARRAY<" * 5_000, "columns_invalid read"),
        ("k STRING, K INT", "columns_invalid 'K' twice"),
        ("k STRING COMMENT 'a\\0b'", "argument_invalid NUL without"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_in_one_sentence(columns: str, says: str) -> None:
    with raises(says) as refused:
        declared_columns(columns)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "kind",
    ["STRING COLLATE UNICODE_CI", "CHAR(3)", "INTERVAL DAY TO SECOND", "GEOMETRY(4326)", "TIME",
     "ARRAY<VARCHAR(3)>", "MAP<STRING COLLATE UTF8_LCASE, INT>"],
)  # fmt: skip
def test_types_that_streams_do_not_have_can_not_be_read(kind: str) -> None:
    with raises("columns_invalid read"):
        declared_columns(f"k STRING, v {kind}")


@pytest.mark.parametrize("kind", ["VOID", "STRUCT<a: STRUCT<b: VOID>>", "STRUCT<>"])
def test_types_without_a_value_are_refused_by_name(kind: str) -> None:
    with raises("column_type_unsupported 'v'"):
        declared_columns(f"k STRING, v {kind}")
