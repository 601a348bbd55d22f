"""The hash of a row (semantics 18.1) with expressions of Spark, whose `xxhash64` nobody here wrote:
a model of `weir.kernel.row_hash`."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.model.digest import is_hashed, presence_of
from weir.model.schema import SEQ, Field


def row_hash(fields: Sequence[Field]) -> Column:
    """Return the hash of a row: of its rank and of columns (Spark's JSON form), whose order does
    not matter.

    A session that Weir has made must resolve it.
    """
    columns = sorted((f["name"], f["type"]) for f in fields if is_hashed(f["type"]))
    presence = _xor([f"if({_quoted(n)} IS NULL, 0L, {_long(presence_of(n))})" for n, _ in columns])
    values = [_value(_quoted(name), kind) for name, kind in columns]
    return F.expr(f"xxhash64({', '.join([SEQ, presence, *values])})")


def _value(it: str, kind: Any, depth: int = 0) -> str:
    """Return what stands for a value: a long, or what Spark hashes as one."""
    if isinstance(kind, str):
        if kind in ("string", "binary") or (kind.startswith("decimal(") and _digits(kind) > 18):
            return f"if({it} IS NULL, NULL, xxhash64({it}))"
        if kind == "date":
            return f"cast(unix_date({it}) AS bigint)"
        wide = {"boolean": "bigint", "byte": "bigint", "short": "bigint", "integer": "bigint",
                "float": "double"}.get(kind)  # fmt: skip
        return f"cast({it} AS {wide})" if wide else it
    if kind["type"] == "struct":
        inner = [(f"{it}.{_quoted(part['name'])}", part["type"]) for part in kind["fields"]]
        parts = [f"xxhash64({i}L, {_value(*one, depth)})" for i, one in enumerate(inner)]
        return f"if({it} IS NULL, NULL, {_xor(parts)})"
    element, entries = kind.get("elementType"), it
    if kind["type"] == "map":
        entries = f"map_entries({it})"
        pair = [{"name": "key", "type": kind["keyType"]},
                {"name": "value", "type": kind["valueType"]}]  # fmt: skip
        element = {"type": "struct", "fields": pair}
    one, place = f"_e{depth}", f"_i{depth}"
    each = f"xxhash64(cast({place} AS bigint), {_value(one, element, depth + 1)})"
    return (
        f"aggregate(transform({entries}, ({one}, {place}) -> {each}), 0L, "
        f"(_a{depth}, _b{depth}) -> _a{depth} ^ _b{depth})"
    )


def _xor(parts: Sequence[str]) -> str:
    """Return the exclusive or of expressions, as a tree that is not deep."""
    if len(parts) < 2:
        return parts[0] if parts else "0L"
    middle = len(parts) // 2
    return f"({_xor(parts[:middle])} ^ {_xor(parts[middle:])})"


def _long(number: int) -> str:
    return f"{number}L"


def _digits(kind: str) -> int:
    return int(kind[len("decimal(") :].partition(",")[0])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
