"""What transforms make of values: the values, their types, and the rows that fail."""

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.spark.xxh64 import position
from weir.kernel.transform_values import Outcome, _cast, made
from weir.kernel.transforms import Computation, condition_over, failing
from weir.model.transforms import condition_of, value_of

FAILS = object()  # a row of which a transform makes nothing
NOON = datetime(2024, 2, 29, 12, 30, 15, 500_000, tzinfo=UTC)
TIMES = pa.array([NOON, None, datetime(1969, 12, 31, 23, tzinfo=UTC)], pa.timestamp("us", "UTC"))
DAYS = pa.array([date(2024, 2, 29), None, date(1969, 12, 31)])
FAR = pa.array([200_000_000, -200_000_000], pa.date32())
MOMENTS = pa.array(["2024-02-29 12:30:15.5", "1969-12-31T23:00:00Z", "2023-02-29", "noon", None])
SPACED = " A\u0301ß "
AMOUNTS = pa.array([Decimal("1.50"), Decimal("-0.05"), None], pa.decimal128(9, 2))
TINY = pa.array([Decimal("0.00000001")], pa.decimal128(20, 8))

# A transform of the column `a`, its values, and what comes of each.
CASES: list[tuple[str, pa.Array, pa.DataType, list[Any]]] = [
    ("a", pa.array(["x", None]), pa.string(), ["x", None]),
    ("lower(a)", pa.array(["ÄB", "İ", None]), pa.string(), ["äb", "i̇", None]),
    ("upper(a)", pa.array(["äb", "ß", None]), pa.string(), ["ÄB", "SS", None]),
    ("trim(a)", pa.array([SPACED, "\tx", None]), pa.string(), [SPACED.strip(), "\tx", None]),
    ("left(a, 2)", pa.array(["😀bc", "a", None]), pa.string(), ["😀b", "a", None]),
    ("substring(a, 2, 2)", pa.array(["😀bcd", "a", None]), pa.string(), ["bc", "", None]),
    ("concat(a, '-', 7)", pa.array(["x", None]), pa.string(), ["x-7", None]),
    ("concat(a, 'x')", pa.array([True, None]), pa.string(), ["truex", None]),
    ("coalesce(a, 'x')", pa.array(["", None]), pa.string(), ["", "x"]),
    ("coalesce(a, 0)", pa.array([7, None], pa.int32()), pa.int32(), [7, 0]),
    ("coalesce(a, 0)", AMOUNTS, pa.decimal128(9, 2), [*AMOUNTS.to_pylist()[:2], Decimal("0.00")]),
    ("coalesce(cast(a AS decimal(20, 4)), a)", AMOUNTS, pa.decimal128(20, 4),
     [Decimal("1.5000"), Decimal("-0.0500"), None]),
    ("coalesce(cast(a AS decimal(4, 0)), cast(a AS decimal(9, 3)))", pa.array(["7", None]),
     pa.decimal128(9, 3), [Decimal("7.000"), None]),
    ("concat(a, date '2024-02-09', timestamp '2024-02-09')", pa.array([""]), pa.string(),
     ["2024-02-092024-02-09 00:00:00"]),
    ("coalesce(int(a), 0)", pa.array(["7", None, "x"]), pa.int32(), [7, 0, FAILS]),
    ("int(a)", pa.array(["7", " -7 ", "7.0", "x", "", "2147483648", None]), pa.int32(),
     [7, -7, FAILS, FAILS, FAILS, FAILS, None]),
    ("bigint(a)", pa.array(["2147483648", "1e3", None]), pa.int64(), [1 << 31, FAILS, None]),
    ("int(a)", pa.array([1, 1 << 40], pa.int64()), pa.int32(), [1, FAILS]),
    ("cast(a AS decimal(4, 1))", pa.array(["1.5", "1.55", "1000"]), pa.decimal128(4, 1),
     [Decimal("1.5"), FAILS, FAILS]),
    ("cast(a AS double)", pa.array(["1.5", "x"]), pa.float64(), [1.5, FAILS]),
    ("cast(a AS double)", pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
    ("cast(a AS boolean)", pa.array(["true", "x"]), pa.bool_(), [True, FAILS]),
    ("cast(a AS boolean)", pa.array([7, 0, None]), pa.bool_(), [True, False, None]),
    ("cast(a AS boolean)", AMOUNTS, pa.bool_(), [True, True, None]),
    ("int(a)", pa.array([True, False, None]), pa.int32(), [1, 0, None]),
    ("int(a)", AMOUNTS, pa.int32(), [FAILS, FAILS, None]),
    ("string(a)", pa.array([7, None]), pa.string(), ["7", None]),
    ("string(a)", AMOUNTS, pa.string(), ["1.50", "-0.05", None]),
    ("string(a)", TINY, pa.string(), ["0.00000001"]),
    ("string(a)", TIMES, pa.string(), ["2024-02-29 12:30:15.5", None, "1969-12-31 23:00:00"]),
    ("string(a)", DAYS, pa.string(), ["2024-02-29", None, "1969-12-31"]),
    ("date(a)", TIMES, pa.date32(), [date(2024, 2, 29), None, date(1969, 12, 31)]),
    ("date(a)", DAYS, pa.date32(), [date(2024, 2, 29), None, date(1969, 12, 31)]),
    ("date(a)", MOMENTS, pa.date32(),
     [date(2024, 2, 29), date(1969, 12, 31), FAILS, FAILS, None]),
    ("date(a)", pa.array(["2024-02-29T23:30:00-05:00", "9999-12-31", " 1850-03-01 "]), pa.date32(),
     [date(2024, 2, 29), date(9999, 12, 31), date(1850, 3, 1)]),
    ("day(a)", pa.array(["2024-02-29T23:30:00-05:00"]), pa.int32(), [29]),
    ("hour(a)", pa.array(["2024-02-29T23:30:00-05:00"]), pa.int32(), [4]),
    ("timestamp(a)", FAR, pa.timestamp("us", "UTC"), [FAILS, FAILS]),
    ("hour(a)", FAR, pa.int32(), [FAILS, FAILS]),
    ("timestamp(a)", MOMENTS, pa.timestamp("us", "UTC"),
     [NOON, datetime(1969, 12, 31, 23, tzinfo=UTC), FAILS, FAILS, None]),
    ("timestamp(a)", DAYS, pa.timestamp("us", "UTC"),
     [datetime(2024, 2, 29, tzinfo=UTC), None, datetime(1969, 12, 31, tzinfo=UTC)]),
    ("cast(a AS timestamp_ntz)", TIMES, pa.timestamp("us"),
     [NOON.replace(tzinfo=None), None, datetime(1969, 12, 31, 23)]),
    ("to_date(a, 'dd.MM.yyyy')", pa.array(["29.02.2024", "29.02.2023", None]), pa.date32(),
     [date(2024, 2, 29), FAILS, None]),
    ("to_timestamp(a, 'dd.MM.yyyy HH:mm')", pa.array(["29.02.2024 12:30", "x"]),
     pa.timestamp("us", "UTC"), [datetime(2024, 2, 29, 12, 30, tzinfo=UTC), FAILS]),
    ("timestamp_millis(a)", pa.array([1_709_209_815_500, 1 << 62, None]),
     pa.timestamp("us", "UTC"), [NOON, FAILS, None]),
    ("timestamp_micros(a)", pa.array([1_709_209_815_500_000, None]),
     pa.timestamp("us", "UTC"), [NOON, None]),
    ("year(a)", TIMES, pa.int32(), [2024, None, 1969]),
    ("month(a)", DAYS, pa.int32(), [2, None, 12]),
    ("day(a)", MOMENTS, pa.int32(), [29, 31, FAILS, FAILS, None]),
    ("hour(a)", TIMES, pa.int32(), [12, None, 23]),
    ("minute(a)", DAYS, pa.int32(), [0, None, 0]),
    ("bucket(16, a)", pa.array(["N14228", None]), pa.int32(), [int(position("N14228") * 16), None]),
    ("bucket(1, a)", pa.array([7, None]), pa.int32(), [0, None]),
    ("truncate(2, a)", pa.array(["😀bc", "a", None]), pa.string(), ["😀b", "a", None]),
    ("truncate(10, a)", pa.array([17, -17, None]), pa.int64(), [10, -20, None]),
    ("truncate(10, a)", pa.array([-128, 5], pa.int8()), pa.int8(), [FAILS, 0]),
    ("lower(a)", pa.nulls(2), pa.null(), [None, None]),
    ("coalesce(a, 'x')", pa.nulls(1), pa.string(), ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "values", "kind", "wanted"), CASES)
def test_a_transform_makes_values_of_a_type_and_says_which_rows_fail(
    text: str, values: pa.Array, kind: pa.DataType, wanted: list[Any]
) -> None:
    rows = pa.table({"A": values})
    computed = Computation.of(value_of(text, "routing key"), rows.schema, "routing key")
    assert computed.type == kind
    found = pickle.loads(pickle.dumps(computed)).over(rows)  # noqa: S301 - as Spark's workers get it
    assert found.values.type == kind
    assert failing(found).to_pylist() == [one is FAILS for one in wanted]
    assert found.values.to_pylist() == [None if one is FAILS else one for one in wanted]
    for row, one in enumerate(wanted):  # each alone, too
        alone = computed.over(rows.slice(row, 1))
        assert failing(alone).to_pylist() == [one is FAILS]


@pytest.mark.parametrize(
    ("text", "values", "wrong"),
    [
        ("no", pa.array(["x"]), "'no' no column A"),
        ("a.b", pa.array(["x"]), "a string no fields"),
        ("a.b", pa.array([{"c": 1}]), "a no field 'b'"),
        ("lower(a)", pa.array([1.5]), "double text"),
        ("lower(a)", pa.array([b"x"]), "binary text"),
        ("lower(a)", pa.array([["x"]]), "text"),
        ("year(a)", pa.array([7]), "long no time"),
        ("date(a)", pa.array([7]), "long no date"),
        ("timestamp(a)", pa.array([True]), "boolean no time"),
        ("timestamp_millis(a)", pa.array(["7"]), "string"),
        ("to_timestamp(a, 'yyyy')", DAYS, "format date"),
        ("truncate(3, a)", DAYS, "truncate date"),
        ("truncate(0, a)", pa.array([7]), "0 1"),
        ("bucket(1000001, a)", pa.array([7]), "1000001 1,000,000"),
        ("substring(a, 0, 1)", pa.array(["x"]), "0 1"),
        ("cast(a AS int)", DAYS, "date int"),
        ("cast(a AS int, b int)", DAYS, "int, b int"),
        ("cast(a AS binary)", pa.array(["x"]), "string binary"),
        ("cast(a AS array<int>)", pa.array(["x"]), "array"),
        ("cast(a AS nothing)", pa.array(["x"]), "nothing"),
        ("coalesce(a, 'x')", pa.array([7]), "string long"),
        ("coalesce(a, 1.5)", pa.array([7]), "decimal long"),
    ],
)
def test_what_does_not_fit_the_type_of_its_column_is_refused_before_there_are_rows(
    text: str, values: pa.Array, wrong: str
) -> None:
    schema = pa.table({"A": values}).schema
    with raises(
        f"{'columns_invalid' if 'nothing' in text else 'expression_not_computable'} {wrong}"
    ):
        Computation.of(value_of(text, "routing key"), schema, "routing key")


def test_columns_that_rows_lack_are_null() -> None:
    schema = pa.schema({"a": pa.string(), "b": pa.int32()})
    computed = Computation.of(value_of("coalesce(a, string(b))", "value"), schema, "value")
    assert computed.over(pa.table({"a": [None, "x"]})).values.to_pylist() == [None, "x"]
    assert computed.over(pa.table({"b": [1, None]})).values.to_pylist() == ["1", None]


def test_fields_of_nested_columns_are_values() -> None:
    rows = pa.table({"x": [{"Y": {"z": "A"}}, {"Y": None}, None]})
    computed = Computation.of(value_of("lower(X.y.Z)", "value"), rows.schema, "value")
    assert computed.over(rows).values.to_pylist() == ["a", None, None]


NAN = float("nan")
ROWS = pa.table({
    "n": pa.array([1, 2, None], pa.int32()), "f": [1.5, NAN, None], "s": ["x", "2", None],
    "d": [date(2024, 1, 31), date(2024, 2, 1), None], "t": pa.array([True, False, None]),
    "u": pa.array([datetime(2024, 1, 31), datetime(9999, 12, 31), None], pa.timestamp("us")),
    "w": pa.array([200_000_000, -200_000_000, None], pa.date32()), "z": pa.nulls(3),
    "e": pa.array([Decimal("1.5"), Decimal("2.0"), None], pa.decimal128(9, 1)),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n = 1", [True, False, None]),
        ("n < 1.5", [True, False, None]),
        ("n = e", [False, True, None]),
        ("n IN (1, 7)", [True, False, None]),
        ("n BETWEEN 1 AND 1", [True, False, None]),
        ("n NOT BETWEEN 1 AND 1", [False, True, None]),
        ("s LIKE '_'", [True, True, None]),
        ("d >= '2024-02-01'", [False, True, None]),
        ("d < TIMESTAMP '2024-01-31 00:00:01'", [True, False, None]),
        ("d = '9999-12-31' OR d < date '9999-12-31'", [True, True, None]),
        ("u < TIMESTAMP '2024-01-31 00:00:01'", [True, False, None]),
        ("u < w", [True, False, None]),
        ("z = z OR z < n", [None, None, None]),
        ("f > 100", [False, True, None]),
        ("f = f", [True, True, None]),
        ("t", [True, False, None]),
        ("t OR n IS NULL", [True, False, True]),
        ("n = 1 OR int(s) = 2", [True, True, None]),
        ("int(s) = 2", [FAILS, True, None]),
        ("int(s) IS NULL OR n = 2", [FAILS, True, True]),
        ("NOT int(s) = 2", [FAILS, False, None]),
        ("n = 2 AND int(s) = 2", [False, True, None]),
    ],
)
def test_a_condition_is_true_false_or_null_or_fails(text: str, wanted: list[Any]) -> None:
    found = condition_over(condition_of(text, "condition"), ROWS.schema, "condition").over(ROWS)
    assert failing(found).to_pylist() == [one is FAILS for one in wanted]
    assert found.values.to_pylist() == [None if one is FAILS else one for one in wanted]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("n", "expression_invalid integer something"),
        ("s = 1", "expression_not_computable string"),
        ("d = 'noon'", "expression_not_computable 'noon' date"),
        ("n AND t", "expression_not_computable AND integer"),
        ("n LIKE 'x'", "expression_not_computable LIKE integer"),
    ],
)
def test_what_can_t_be_compared_is_no_condition(text: str, wrong: str) -> None:
    with raises(wrong):
        condition_over(condition_of(text, "condition"), ROWS.schema, "condition")


def test_texts_of_many_rows_may_be_longer_than_one_array_of_arrow() -> None:
    rows = pa.table({"a": ["7", "x", None, "8"]})
    computed = Computation.of(value_of("int(a)", "key"), rows.schema, "key")

    def few(of: pa.ChunkedArray, written: str) -> Outcome:
        if len(of) > 1:
            raise pa.ArrowCapacityError("array cannot contain more")
        return _cast(of, written)

    with patch("weir.kernel.transform_values._cast", few):
        found = computed.over(rows)
    assert found.values.to_pylist() == [7, None, None, 8]
    assert failing(found).to_pylist() == [False, True, False, False]


def test_the_value_that_in_looks_for_is_computed_once() -> None:
    rows = pa.table({"a": [str(n) for n in range(1_000)]})
    some = ", ".join(map(str, range(0, 300, 3)))
    condition = condition_of(f"int(a) IN ({some})", "condition")
    with patch("weir.kernel.transforms.made", wraps=made) as computing:
        found = condition_over(condition, rows.schema, "condition").over(rows)
    assert found.values.to_pylist().count(True) == 100
    assert computing.call_count == 3  # twice of no rows, for the type


def test_the_text_of_a_value_is_the_routing_key() -> None:
    rows = pa.table({"a": ["7", "x", None]})
    found = Computation.of(value_of("int(a)", "key"), rows.schema, "key").texts(rows)
    assert found.values.to_pylist() == ["7", None, None]
    assert failing(found).to_pylist() == [False, True, False]
