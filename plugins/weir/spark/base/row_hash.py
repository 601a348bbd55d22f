"""The hash of a row, of which digests are made, with native expressions (semantics 18.1).

`weir.kernel.row_hash` computes the same numbers without a JVM.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.model.digest import is_hashed, presence_of
from weir.model.schema import SEQ, Field
from weir.spark.base.java import java_class


def row_hash(fields: Sequence[Field]) -> Column:
    """Return the hash of a row: of its rank and of columns (Spark's JSON form), whose order does
    not matter.

    It is given to Spark as one text, because a call per node would take longer than it saves. A
    session that Weir has made must resolve it.
    """
    columns = sorted((f["name"], f["type"]) for f in fields if is_hashed(f["type"]))
    presence = _xor([f"if({_quoted(n)} IS NULL, 0L, {_long(presence_of(n))})" for n, _ in columns])
    values = [_value(_quoted(name), kind) for name, kind in columns]
    return F.expr(f"xxhash64({', '.join([SEQ, presence, *values])})")


def sums_modulo(jvm: Any, columns: Sequence[Column]) -> list[Column]:
    """Return the sums of columns of longs, modulo 2^64.

    They are Spark's sums of a session without ANSI arithmetic, in which a sum of longs wraps
    around: a sum keeps the arithmetic of the session that is active when it is made.
    """
    sessions = java_class(jvm, "org.apache.spark.sql.classic.SparkSession")
    utils = java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils")
    made = java_class(jvm, "org.apache.spark.sql.catalyst.expressions.aggregate.Sum")
    before = sessions.active()
    wrapping = before.newSession()
    wrapping.conf().set("spark.sql.ansi.enabled", "false")
    sessions.setActiveSession(wrapping)
    try:
        return [Column(utils.column(made(utils.expression(one._jc)))) for one in columns]
    finally:
        sessions.setActiveSession(before)


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
