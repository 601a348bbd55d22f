"""Makes the files that bad inputs are made of: `GENERATORS[name](path, **arguments)`."""

import base64
import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_GOOD: dict[str, list[Any]] = {"id": ["int64", [1, 2, 3]], "v": ["string", ["a", "b", "c"]]}
_TYPES: dict[str, pa.DataType] = {
    "ns": pa.timestamp("ns"), "us": pa.timestamp("us"), "utc": pa.timestamp("us", tz="UTC"),
    "null": pa.null(), "time64": pa.time64("us"), "time32": pa.time32("ms"),
    "duration": pa.duration("us"), "decimal38": pa.decimal128(38, 10),
    "decimal76": pa.decimal256(76, 10), "nulls": pa.list_(pa.null()),
    "map": pa.map_(pa.string(), pa.int64()), "longs": pa.list_(pa.int64()),
    "struct": pa.struct({"k": pa.int64()}), "wider": pa.struct({"k": pa.int64(), "x": pa.int64()}),
    "half_float": pa.float16(), "dictionary": pa.dictionary(pa.int32(), pa.string()),
}  # fmt: skip


def _type(name: str) -> pa.DataType:
    if name.startswith("deep"):
        kind: pa.DataType = pa.int64()
        for _ in range(int(name[4:])):
            kind = pa.struct({"a": kind})
        return kind
    return _TYPES.get(name) or pa.type_for_alias(name)


def _values(kind: str, values: list[Any]) -> pa.Array:
    type_ = _type(kind)
    if kind.startswith("decimal"):
        values = [Decimal(value) for value in values]
    elif kind == "binary":
        values = [value.encode("latin-1") for value in values]
    elif kind == "half_float":
        import numpy as np

        values = [np.float16(value) for value in values]
    elif kind == "map":
        values = [list(value.items()) for value in values]
    elif kind in ("ns", "us", "utc", "duration"):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


def parquet(path: Path, columns: Any = None, metadata: Any = None, **options: Any) -> None:
    """Write a Parquet file. `columns`: [name, type, values] each."""
    given = columns if columns is not None else [[n, *rest] for n, rest in _GOOD.items()]
    arrays = [_values(kind, values) for _, kind, values in given]
    schema = pa.schema(
        [pa.field(name, array.type) for (name, *_), array in zip(given, arrays, strict=True)]
    )
    if metadata is not None:
        schema = schema.with_metadata({key: json.dumps(one) for key, one in metadata.items()})
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, **options)


def strings_of_bytes(path: Path, values: list[str]) -> None:
    """Write Parquet strings that are not UTF-8: `values` are the bytes as latin-1."""
    data = b"".join(value.encode("latin-1") for value in values)
    ends = [sum(len(value) for value in values[:i]) for i in range(len(values) + 1)]
    offsets = pa.array(ends, pa.int32()).buffers()[1]
    array = pa.StringArray.from_buffers(len(values), offsets, pa.py_buffer(data))
    pq.write_table(pa.table({"id": array}), path)


def damaged(path: Path, how: str) -> None:
    """Write a good Parquet file, then cut it off or write over it."""
    parquet(path, compression="none" if how == "zeroed" else "snappy")
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    if how == "half":
        data = data[: len(data) // 2]
    elif how == "zeroed":
        data[4:-footer] = bytes(len(data) - 4 - footer)
    elif how == "footer":
        data[-footer:-8] = b"\xff" * (footer - 8)
    elif how == "length":
        data[-8:-4] = b"\xff\xff\xff\x7f"
    elif how == "encrypted":
        data[:4] = data[-4:] = b"PARE"
    path.write_bytes(data)


def text(path: Path, text: str, encoding: str = "utf-8", errors: str = "strict") -> None:
    """Write a text file."""
    path.write_bytes(text.encode(encoding, errors))


def raw(path: Path, base64_: str) -> None:
    """Write these bytes."""
    path.write_bytes(base64.b64decode(base64_))


def cut_gzip(path: Path, text: str) -> None:
    """Write a compressed text file that ends too early."""
    data = gzip.compress(text.encode())
    path.write_bytes(data[: len(data) * 2 // 3])


def deep_json(path: Path, depth: int) -> None:
    """Write a json object in an object, to this depth."""
    path.write_text('{"id":' * depth + "1" + "}" * depth + "\n")


GENERATORS: dict[str, Callable[..., None]] = {
    one.__name__: one
    for one in (parquet, strings_of_bytes, damaged, text, raw, cut_gzip, deep_json)
}


def expand(value: Any) -> Any:
    """Return data with {"times": [text, n]}, {"joined": [...]} and {"numbered": [text, n]} written
    out."""
    if isinstance(value, list):
        return [expand(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"times"}:
        return expand(value["times"][0]) * value["times"][1]
    if set(value) == {"joined"}:
        return "".join(expand(value["joined"]))
    if set(value) == {"numbered"}:
        return [value["numbered"][0].replace("#", str(i)) for i in range(value["numbered"][1])]
    return {name: expand(part) for name, part in value.items()}
