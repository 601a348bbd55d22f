"""Join events with the value that held at a time of theirs: an as-of join.

The changes of a key are packed into rows of at most `_PACKED` changes, in the order of their times.
A row holds from its first change until the next row's, so an event matches at most one row of its
key, and finds its change there by bisection. An event is therefore joined by an ordinary equal join
on its key, and is neither sorted nor, if the changes are broadcast, moved. However many changes or
events one key has, an event costs the same: one bisection, and one comparison for each row of the
key. A range join compares every event of a key with every change of it, and a window sorts all
events.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructType, VariantType

from weir.spark.base.bisection import bisected
from weir.spark.base.exact import quoted

_PACKED = 512  # a power of two
_WIDE = 60  # with more columns than that, Spark would copy a row for each step of a bisection
_FOREVER = (1 << 63) - 1


def join_as_of(
    events: DataFrame,
    changes: DataFrame,
    *,
    key: Column,
    time: Column,
    values: Sequence[str],
    order: Sequence[str],
    how: str = "left",
    hint: str = "broadcast",
) -> DataFrame:
    """Return the events with the values that held for their key at their time.

    `key` and `time` (a long): expressions of the events. `changes` has the columns `_weir_key`,
    `_weir_time` (a long), `_deleted` (boolean), `values`, and `order`: of the changes of a key at
    the same time, the last by these columns holds. An event finds the last change at or before its
    time; nothing holds if there is none, if that one is a deletion, or if its key or time is null.
    Such events have null values, or with `how` "inner" are left out. `hint`: how Spark joins.

    The columns of the result are those of the events, then `values`.
    """
    names = events.columns
    keyed = events.select(
        *quoted(names),
        key.alias("_weir_event_key"),
        time.cast(LongType()).alias("_weir_event_time"),
    )
    packed = _packed(changes, values, order)
    matches = (
        (F.col("_weir_event_key") == F.col("_weir_key"))
        & (F.col("_weir_event_time") >= F.col("_weir_from"))
        & (F.col("_weir_event_time") < F.col("_weir_until"))
    )
    joined = keyed.join(packed.hint(hint), matches, "inner" if how == "inner" else "left")
    if len(names) + len(values) > _WIDE:
        found = joined.withColumn("_weir_found", F.get("_weir_values", _index()))
    else:
        found = bisected(joined, "_weir_index", _PACKED, _reached)
        found = found.withColumn("_weir_found", F.get("_weir_values", "_weir_index"))
    if how == "inner":
        found = found.where(F.col("_weir_found").isNotNull())
    return found.select(
        *quoted(names), *[F.col("_weir_found")[f"v{i}"].alias(v) for i, v in enumerate(values)]
    )


def _packed(changes: DataFrame, values: Sequence[str], order: Sequence[str]) -> DataFrame:
    """Return rows of changes: `_weir_key`, `_weir_from` and `_weir_until` (exclusive), the times of
    the changes in ascending order, and what holds from each of them, null for nothing."""
    value = F.struct(*[column.alias(f"v{i}") for i, column in enumerate(quoted(values))])
    or_null = F.when(~F.col("_deleted"), value)
    in_order = Window.partitionBy("_weir_key").orderBy("_weir_time", *order)
    wanted = changes.where("_weir_key IS NOT NULL AND _weir_time IS NOT NULL").select(
        "_weir_key", "_weir_time", *order, or_null.alias("_weir_value")
    )
    ranked = wanted.select(
        "_weir_key",
        "_weir_time",
        "_weir_value",
        F.row_number().over(in_order).alias("_weir_rank"),
        F.lead("_weir_time", 1, _FOREVER).over(in_order).alias("_weir_next"),
    )
    row = F.floor((F.col("_weir_rank") - 1) / _PACKED)
    collected = F.collect_list(F.struct("_weir_time", "_weir_value"))
    if _has_order(ranked.schema["_weir_value"].dataType):
        ascending = F.sort_array(collected)
    else:
        ascending = F.array_sort(
            collected, lambda a, b: F.signum(a["_weir_time"] - b["_weir_time"]).cast("int")
        )
    packed = (
        ranked.where("_weir_next > _weir_time")  # the last one of several at the same time
        .groupBy("_weir_key", row.alias("_weir_row"))
        .agg(ascending.alias("_weir_changes"), F.max("_weir_next").alias("_weir_until"))
    )
    return packed.select(
        "_weir_key",
        F.col("_weir_changes._weir_time").alias("_weir_times"),
        F.col("_weir_changes._weir_value").alias("_weir_values"),
        F.element_at("_weir_changes", 1)["_weir_time"].alias("_weir_from"),
        "_weir_until",
    )


def _has_order(type_: DataType) -> bool:
    """Return whether Spark can compare values of a type, and so sort arrays of them by itself."""
    if isinstance(type_, StructType):
        return all(_has_order(field.dataType) for field in type_.fields)
    if isinstance(type_, ArrayType):
        return _has_order(type_.elementType)
    return not isinstance(type_, MapType | VariantType)


def _reached(place: str) -> str:
    return f"get(_weir_times, {place}) <= _weir_event_time"


def _index() -> Column:
    """Compute in one expression what `bisected` adds step by step; slower per event."""
    steps = ", ".join(str(1 << i) for i in reversed(range(_PACKED.bit_length() - 1)))
    reached = _reached("place + step")
    return F.expr(f"aggregate(array({steps}), 0, (place, step) -> place + if({reached}, step, 0))")
