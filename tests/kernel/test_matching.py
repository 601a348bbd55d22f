"""Rows match by keys in columns of every type that has texts, as routing keys have them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from weir.kernel.matching import has_texts, in_columns, plain_number


@pytest.mark.parametrize(
    ("kind", "values", "key"),
    [
        (pa.string(), ["a", "a ", None], "a"),
        (pa.large_string(), ["a", "b", None], "a"),
        (pa.int8(), [-7, 7, None], "-7"),
        (pa.bool_(), [True, False, None], "true"),
        (pa.date32(), [date(2026, 1, 2), date(2026, 1, 3), None], "2026-01-02"),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("1.51"), None], "1.50"),
        (pa.decimal128(10, 2), [Decimal(7), Decimal("7.01"), None], "7"),  # from before a widening
        (pa.decimal128(38, 10), [Decimal("1.5"), Decimal(15), None], "1.50"),
        (pa.decimal128(4, 0), [Decimal(700), Decimal(7), None], "700"),
        (pa.int64(), [7, 70, None], "007.0"),  # of a text
        (pa.decimal128(4, 1), [Decimal(0), Decimal(10), None], "-0"),
        (pa.string(), ["7.0", "7", None], "7.0"),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), None],
            "2026-01-02 03:04:05",
        ),
    ],
)
def test_rows_match_that_have_a_key_in_a_column(kind: pa.DataType, values: Any, key: str) -> None:
    assert has_texts(kind)
    rows = pa.table({"one": pa.array(values, kind), "other": ["x", "x", key]})
    assert in_columns(["one"], [key, "never"]).rows(rows).to_pylist() == [True, False, False]
    assert in_columns(["one", "other"], [key]).rows(rows).to_pylist() == [True, False, True]


def test_values_that_have_no_texts_are_no_keys() -> None:
    kinds = [pa.float64(), pa.binary(), pa.timestamp("ns"), pa.list_(pa.string())]
    assert not any(map(has_texts, kinds))


def test_only_zeros_at_the_ends_of_a_number_and_the_sign_of_zero_say_nothing() -> None:
    texts = {"7.00": "7", "-0.50": "-0.5", "7.": "7", "100": "100", "007": "7", "-0": "0"}
    others = ("1.5e10", "1.0.0", "", ".", "-", "7a", " 7", "7\n")
    assert {one: plain_number(one) for one in texts} == texts
    assert all(plain_number(one) == one for one in others)
