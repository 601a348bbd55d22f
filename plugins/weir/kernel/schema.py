"""Convert between Spark's JSON form of columns and pyarrow's schema."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import BadRows, InvalidInput
from weir.model.names import shortened
from weir.model.schema import (
    MOST_DIGITS,
    VOID,
    Field,
    Kind,
    list_of,
    map_of,
    new_field,
    show,
    stored_name,
)

_SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
}
_BY_ARROW = {kind: name for name, kind in _SIMPLE.items() if name != "variant"} | {
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
    pa.null(): VOID,
    pa.uint8(): "short",
    pa.uint16(): "integer",
    pa.uint32(): "long",
    pa.uint64(): "decimal(20,0)",
    pa.date64(): "date",
}
STORED, DEFAULT = "stored", "default"
# Spark's vectorized reader fails for the others, and for decimals of more than `MOST_DIGITS`.
_WITH_DEFAULT = [name for name in _SIMPLE if name not in ("binary", "variant")]
UUID = pa.uuid()  # kept as text; pyarrow casts it to text that is no UUID
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_PLACES = (0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34)  # of bytes in such a text
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")


def to_arrow(fields: list[Field]) -> pa.Schema:
    """Return the pyarrow schema of a stream's columns. Raises InvalidInput naming one whose type
    pyarrow does not have."""
    return pa.schema([pa.field(f["name"], _column(f), f["nullable"]) for f in fields])


def to_read(fields: list[Field]) -> pa.Schema:
    """Return the schema of columns like `to_arrow`; the metadata of each says by which name files
    have it (`STORED`), and what it is in a file that does not have it (`DEFAULT`)."""
    found = []
    for field, column in zip(fields, to_arrow(fields), strict=True):
        known = {STORED: stored_name(field)} if "stored" in field else {}
        known |= {DEFAULT: field["default"]} if "default" in field else {}
        found.append(column.with_metadata(known) if known else column)
    return pa.schema(found)


def in_file(column: pa.Field) -> str:
    """Return the name that files have for a column of `to_read`."""
    return str((column.metadata or {}).get(STORED.encode(), column.name.encode()).decode())


def absent(column: pa.Field, rows: int) -> pa.Array:
    """Return the values of a column of `to_read` in rows of a file that does not have it."""
    default = (column.metadata or {}).get(DEFAULT.encode())
    if default is None:
        return pa.nulls(rows, column.type)
    return pa.repeat(pa.scalar(default.decode()).cast(column.type), rows)


def with_default(field: Field, text: str) -> Field:
    """Return a column with a default, in a text that means the same value in all wider types.

    Raises InvalidInput for a text that is no value of the column's type, and for a type whose
    defaults Spark can't read.
    """
    kind = field["type"]
    digits = _DECIMAL.fullmatch(kind) if isinstance(kind, str) else None
    if kind not in _WITH_DEFAULT and not (digits and int(digits[1]) <= MOST_DIGITS):
        raise InvalidInput(
            "argument_invalid",
            f"column {field['name']!r} is {show(kind)}, and Spark reads defaults of texts, "
            "numbers, booleans, dates, times and decimals of at most 18 digits only; leave the "
            "default out.",
        )
    try:
        if "${" in text:  # which Spark may replace
            raise ValueError
        value = pa.scalar(text).cast(_column(field))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        raise InvalidInput(
            "argument_invalid",
            f"the default {shortened(text)} of column {field['name']!r} is no {show(kind)}; write "
            "a value of that type.",
        ) from None
    if kind in ("float", "double"):
        text = repr(value.as_py())
    elif kind != "string":
        text = str(value.cast(pa.string()))
    return {**field, "default": text}


def same_default(there: Field, wanted: Field) -> bool:
    """Return whether a column of the same or a narrower type has the default of another one. A
    double that was a float may have the value that the text had as a float."""
    if "default" not in there:
        return False
    kinds = {_column(wanted)} | ({pa.float32()} if wanted["type"] == "double" else set())
    texts = [pa.scalar(one["default"]) for one in (there, wanted)]
    return any(texts[0].cast(kind).equals(texts[1].cast(kind)) for kind in kinds)


def from_arrow(schema: pa.Schema) -> list[Field]:
    """Return the columns of a pyarrow schema in Spark's JSON form. Raises InvalidInput naming the
    column."""
    found = []
    for field in schema:
        try:
            kind = "string" if field.type == UUID else _from_arrow(field.type)
        except InvalidInput as error:
            raise InvalidInput(
                "column_type_unsupported", f"column {field.name!r} {error.sentence}"
            ) from None
        found.append(new_field(field.name, kind))
    return found


def cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Return a column in the type of a field. Raises BadRows for a value that would change."""
    if column.type == UUID:
        parts = [texts_of_uuids(chunk.storage) for chunk in column.chunks]
        return pa.chunked_array(parts, pa.string())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise BadRows(
            "bad_rows",
            f"a value of column {field.name!r} is no {column.type} ({error}); correct it, or give "
            "bytes as binary.",
        ) from None
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise BadRows(
            "bad_rows",
            f"a value of column {field.name!r} can't be kept unchanged ({error}); round or cast "
            "the column first.",
        ) from None


def texts_of_uuids(column: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Return UUIDs, each of 16 bytes, as texts."""
    count, there = len(column), column.is_valid()
    data = np.frombuffer(column.buffers()[1], np.uint8)[16 * column.offset :][: 16 * count]
    texts = np.full((count, 36), ord("-"), np.uint8)
    for part, place in zip(range(16), _PLACES, strict=True):
        high, low = np.divmod(data.reshape(count, 16)[:, part], 16)
        texts[:, place], texts[:, place + 1] = _HEX[high], _HEX[low]
    ends = np.arange(0, 36 * count + 1, 36, dtype=np.int32)
    made = pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(texts))
    return made if not column.null_count else pc.if_else(there, made, pa.scalar(None, pa.string()))


def _column(field: Field) -> pa.DataType:
    try:
        return arrow_type(field["type"])
    except InvalidInput as error:
        raise InvalidInput(
            "column_type_unsupported", f"column {field['name']!r} {error.sentence}"
        ) from None


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the type of pyarrow for a type in Spark's JSON form; null for one that is not known.
    Raises InvalidInput, whose sentence follows the name of a column."""
    if kind == VOID:
        return pa.null()
    if isinstance(kind, str):
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if match := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(match[1]), int(match[2]))
    elif kind["type"] == "array":
        return pa.list_(arrow_type(kind["elementType"]))
    elif kind["type"] == "map":
        return pa.map_(arrow_type(kind["keyType"]), arrow_type(kind["valueType"]))
    elif kind["type"] == "struct":
        return pa.struct([pa.field(f["name"], arrow_type(f["type"])) for f in kind["fields"]])
    raise InvalidInput(
        "column_type_unsupported", f"has the type {kind}, which can only be read with Spark."
    )


def _from_arrow(kind: pa.DataType) -> Kind:
    if kind in _BY_ARROW:
        return _BY_ARROW[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_dictionary(kind):
        return _from_arrow(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith("pandas."):
        return str(kind)  # a period or an interval, which its storage alone does not tell
    if isinstance(kind, pa.BaseExtensionType) and kind != UUID:
        return _from_arrow(kind.storage_type)
    # Not views of lists, whose values pyarrow drops when it casts them.
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list_of(_from_arrow(kind.value_type))
    if pa.types.is_map(kind):
        return map_of(_from_arrow(kind.key_type), _from_arrow(kind.item_type))
    if pa.types.is_struct(kind) and kind.num_fields > 0:  # Parquet has none without
        parts = [kind.field(i) for i in range(kind.num_fields)]
        return {"type": "struct", "fields": [new_field(p.name, _from_arrow(p.type)) for p in parts]}
    raise InvalidInput(
        "column_type_unsupported", f"is {kind}, which Spark does not have; cast it first."
    )
