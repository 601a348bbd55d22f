"""Rows of every type that streams have in pyarrow, for tests of digests."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.string(), "binary": pa.binary(), "boolean": pa.bool_(), "byte": pa.int8(),
    "short": pa.int16(), "integer": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "small": pa.decimal128(18, 4), "big": pa.decimal128(38, 6),
    "date": pa.date32(), "time": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"),
}  # fmt: skip
TYPES: dict[str, pa.DataType] = _SCALARS | {
    "list": pa.list_(pa.int32()),
    "texts": pa.list_(pa.string()),
    "lists": pa.list_(pa.list_(pa.float64())),
    "map": pa.map_(pa.string(), pa.int64()),
    "maps": pa.map_(pa.int32(), pa.list_(pa.struct({"x": pa.decimal128(30, 2), "y": pa.date32()}))),
    "struct": pa.struct({"a b": pa.int64(), "c`d": pa.struct({"e": pa.string(), "f": pa.bool_()})}),
    "odd `name": pa.string(),
}


def sum_of_rows(digest: int, clock: int) -> int:
    """The sum of the hashes of a commit's rows: its digest is that times a number of its clock."""
    return digest * pow(2 * clock + 1, -1, 1 << 64) % (1 << 64)


def rows_of_every_type(random: Random, count: int) -> pa.Table:
    """A table with a column of each type, about a fifth of whose values are null at each depth."""
    return pa.table(
        {name: pa.array([_value(random, kind) for _ in range(count)], kind)
         for name, kind in TYPES.items()}
    )  # fmt: skip


def _value(random: Random, kind: pa.DataType, nullable: bool = True) -> Any:
    if nullable and random.random() < 0.2:
        return None
    if pa.types.is_string(kind):
        return "".join(random.choices("aZ0 ä€😀\0", k=_length(random)))
    if pa.types.is_binary(kind):
        return random.randbytes(_length(random))
    if pa.types.is_boolean(kind):
        return random.random() < 0.5
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return random.choice([0, -1, -most, most - 1, random.randrange(-most, most)])
    if pa.types.is_floating(kind):
        special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-45, 3.4e38]
        return random.choice([*special, random.gauss(0, 1)])
    if pa.types.is_decimal(kind):
        most = 10**kind.precision
        low = random.choice([1, 128, 129, 255, 256, 32768, 1 << 63, 1 << 64, most])
        return Decimal(random.randrange(-min(low, most) + 1, min(low, most))).scaleb(-kind.scale)
    if pa.types.is_date(kind):
        return date(1, 1, 1) + timedelta(days=random.randrange(3_000_000))
    if pa.types.is_timestamp(kind):
        at = datetime(1, 1, 1, tzinfo=UTC if kind.tz else None)
        return at + timedelta(microseconds=random.randrange(250_000_000_000_000_000))
    if pa.types.is_struct(kind):
        return {
            kind.field(i).name: _value(random, kind.field(i).type) for i in range(kind.num_fields)
        }
    size = random.choice([0, 1, 2, 5])
    if pa.types.is_map(kind):
        keys = {_value(random, kind.key_type, nullable=False): None for _ in range(size)}
        return [(key, _value(random, kind.item_type)) for key in keys]
    return [_value(random, kind.value_type) for _ in range(size)]


def _length(random: Random) -> int:
    return random.choice([0, 1, 3, 4, 7, 8, 12, 16, 31, 32, 33, 70, 600, random.randrange(100)])
