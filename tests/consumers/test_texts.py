"""Values of pyarrow as texts: whatever they are, they are JSON of the same values, and Postgres
reads them as such."""

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from weir.kernel.texts import copied_texts, json_texts

LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.string(), st.text(st.characters(codec="utf-8"), max_size=8)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.decimal128(38, 7), st.decimals(-(10**20), 10**20, places=7)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
]


def _nested(
    one: st.SearchStrategy[tuple[pa.DataType, Any]],
) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    def lists(part: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        return pa.list_(part[0]), st.lists(st.none() | part[1], max_size=3)

    def structs(parts: list[tuple[pa.DataType, Any]]) -> tuple[pa.DataType, Any]:
        names = [f'f"{i}' for i in range(len(parts))]
        kind = pa.struct([pa.field(n, k) for n, (k, _) in zip(names, parts, strict=True)])
        values = {n: st.none() | v for n, (_, v) in zip(names, parts, strict=True)}
        return kind, st.fixed_dictionaries(values)

    def maps(part: tuple[pa.DataType, Any]) -> tuple[pa.DataType, Any]:
        values = st.dictionaries(st.text(max_size=3), st.none() | part[1], max_size=3)
        return pa.map_(pa.string(), part[0]), values.map(lambda found: list(found.items()))

    return one.map(lists) | st.lists(one, min_size=1, max_size=3).map(structs) | one.map(maps)


KINDS = st.recursive(st.sampled_from(LEAVES), _nested, max_leaves=5)


def _as_json(kind: pa.DataType, value: Any) -> Any:
    """The value that its JSON must have, by Python alone."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):  # the fewest digits that tell it from its neighbours
            return Decimal(str(np.float32(value) if pa.types.is_float32(kind) else value))
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if pa.types.is_list(kind):
        return [_as_json(kind.value_type, one) for one in value]
    if pa.types.is_map(kind):
        return {key: _as_json(kind.item_type, one) for key, one in value}
    if pa.types.is_struct(kind):
        return {name: _as_json(kind.field(name).type, one) for name, one in value.items()}
    return value


@given(st.data(), KINDS, st.integers(0, 3), st.integers(0, 3))
def test_nested_values_become_their_json_in_each_part_of_a_table(
    data: st.DataObject, kind: tuple[pa.DataType, Any], before: int, after: int
) -> None:
    values = data.draw(st.lists(st.none() | kind[1], min_size=before + after, max_size=12))
    array = pa.array(values, kind[0]).slice(before, len(values) - before - after)
    wanted = [_as_json(kind[0], one) for one in array.to_pylist()]
    texts = json_texts(array)
    found = [None if one is None else json.loads(one, parse_float=Decimal) for one in texts]
    assert found == wanted


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_days_that_python_does_not_have_are_told_by_iso_8601(days: list[int | None]) -> None:
    column = pa.chunked_array([pa.array(days, pa.int32()).cast(pa.date32())])
    for day, found in zip(days, copied_texts(column).to_pylist(), strict=True):
        if day is None:
            assert found is None
        elif -719_162 <= day <= 2_932_896:
            assert found == date.fromordinal(day + date(1970, 1, 1).toordinal()).isoformat()
        else:
            assert found[0] in "+-0"
