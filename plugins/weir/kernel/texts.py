"""Values of pyarrow columns as texts: as Postgres reads them, and as JSON, as Spark writes both.

Nested columns are turned into JSON column by column, never value by value.
"""

import base64
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import BadRows
from weir.kernel.values import date_text, moment_text

Texts = list[str | None]
_ESCAPES = {chr(i): f"\\u{i:04X}" for i in range(32)} | {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
_TABLE = str.maketrans(_ESCAPES)
_PLAIN_EXPONENTS = range(-2, 8)  # of numbers that Java writes without an exponent, from 0.001 on
# Days and microseconds that pyarrow writes as texts like Spark does: the years 1 to 9999.
_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = (-62_135_596_800_000_000, 253_402_300_799_999_999)


def copied_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column as texts that Postgres reads as the same values."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_nested(kind):
        return _by_chunk(column, json_texts)
    if pa.types.is_binary(kind):
        return _by_chunk(column, lambda a: _each(a, lambda value: "\\x" + value.hex()))
    texts = _by_chunk(column, _times) if _is_time(kind) else column.cast(pa.string())
    if pa.types.is_timestamp(kind) and kind.tz:
        return pc.binary_join_element_wise(texts, "+00", "")
    return texts


def moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates, or times of UTC or of no zone, as texts with all digits of a second."""
    return pa.chunked_array([_moments(chunk) for chunk in column.chunks], pa.string())


def json_texts(array: pa.Array) -> Texts:
    """Return the values of an array as JSON; None for a null."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _structs(array)
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind):
        return _lists(array)
    if pa.types.is_string(kind):
        return _each(array, quoted)
    if pa.types.is_binary(kind):
        return _each(array, lambda value: f'"{base64.b64encode(value).decode()}"')
    if pa.types.is_floating(kind):
        return _each(array.cast(pa.string()), _number)
    if _is_time(kind):
        zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
        return [
            None if one is None else f'"{one.replace(" ", "T")}{zone}"' for one in _times(array)
        ]
    texts: Texts = array.cast(pa.string()).to_pylist()
    return texts


def rows_as_json(table: pa.Table) -> Texts:
    """Return each row of a table as a JSON object."""
    if table.num_columns == 0:
        return ["{}"] * table.num_rows
    rows = table.to_struct_array().combine_chunks()
    return json_texts(rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows)


def _by_chunk(column: pa.ChunkedArray, convert: Callable[[pa.Array], Texts]) -> pa.ChunkedArray:
    return pa.chunked_array(
        [pa.array(convert(chunk), pa.string()) for chunk in column.chunks], pa.string()
    )


def _each(array: pa.Array, convert: Callable[[Any], str]) -> Texts:
    return [None if value is None else convert(value) for value in array.to_pylist()]


def quoted(value: str) -> str:
    return f'"{value.translate(_TABLE)}"'


def _structs(array: pa.Array) -> Texts:
    names = [f"{quoted(array.type.field(i).name)}:" for i in range(array.type.num_fields)]
    parts = [
        [name + (one or "null") for one in json_texts(child)]
        for name, child in zip(names, array.flatten(), strict=True)
    ]
    return [
        "{" + ",".join(row) + "}" if valid else None
        for valid, row in zip(array.is_valid().to_pylist(), zip(*parts, strict=True), strict=True)
    ]


def _lists(array: pa.Array) -> Texts:
    texts = [one or "null" for one in json_texts(_within(array, array.values))]
    return _joined(array, texts, "[", "]")


def _maps(array: pa.Array) -> Texts:
    kind = array.type.key_type
    keys = _within(array, array.keys)
    if pa.types.is_string(kind):
        names = [quoted(key) for key in keys.to_pylist()]
    else:  # as Java writes them
        names = [quoted((text or "null").strip('"')) for text in json_texts(keys)]
    items = json_texts(_within(array, array.items))
    texts = [f"{name}:{item or 'null'}" for name, item in zip(names, items, strict=True)]
    offsets = array.offsets.to_pylist()
    for low, high in pairwise(offsets):
        mine = names[low - offsets[0] : high - offsets[0]]
        if len(set(mine)) < len(mine):
            raise BadRows(
                "bad_rows",
                f"a map has the key {next(one for one in mine if mine.count(one) > 1)} twice, and "
                "JSON would keep one of its values; correct it, or write a list of structs.",
            )
    return _joined(array, texts, "{", "}")


def _within(array: pa.Array, child: pa.Array) -> pa.Array:
    """Return the part of the values of lists or maps that belongs to these lists."""
    if len(array) == 0:
        return child.slice(0, 0)
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return child.slice(first, last - first)


def _joined(array: pa.Array, texts: list[str], begin: str, end: str) -> Texts:
    offsets = array.offsets.to_pylist()
    return [
        begin + ",".join(texts[low - offsets[0] : high - offsets[0]]) + end if valid else None
        for valid, (low, high) in zip(array.is_valid().to_pylist(), pairwise(offsets), strict=True)
    ]


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _times(array: pa.Array) -> Texts:
    texts: Texts = _moments(array).to_pylist()
    return texts


def _moments(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us"))  # without a zone
        numbers, limits = array.cast(pa.int64()), _MICROSECONDS
    else:
        numbers, limits = array.cast(pa.int32()), _DAYS
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is None or limits[0] <= ends["min"] <= ends["max"] <= limits[1]:
        return array.cast(pa.string())
    shown = _each(numbers, date_text if pa.types.is_date32(array.type) else moment_text)
    return pa.array(shown, pa.string())


def _number(text: str) -> str:
    """Return a number that pyarrow wrote as Java writes it."""
    if text in ("nan", "inf", "-inf"):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[text]
    sign, found, exponent = Decimal(text).as_tuple()
    digits = "".join(map(str, found)).lstrip("0")
    minus = "-" if sign else ""
    if not digits:
        return f"{minus}0.0"
    assert isinstance(exponent, int), text
    point = len(digits) + exponent  # the number is 0.digits times 10 to this power
    digits = digits.rstrip("0")
    if point not in _PLAIN_EXPONENTS:
        return f"{minus}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    whole = digits[:point].ljust(point, "0")
    return f"{minus}{whole}.{digits[point:] or '0'}"
