"""Convert columns between types that hold the same values, with native expressions of Spark."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from weir.inputs.parquet_types import UUID
from weir.model.schema import VOID, is_open, same_type

_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))  # of the text of a UUID: begin and length


def spark_type(kind: Any) -> DataType:
    """Return a type in Spark's JSON form as an object."""
    field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["x"].dataType


def converted(column: Column, kind: Any, wanted: Any) -> Column:
    """Return a column of type `kind` in the wider type `wanted` (`weir.model.schema.wider`). Values
    of type `UUID` are bytes and become text; those of type `VOID` are null."""
    if kind == VOID:
        return F.lit(None) if wanted == VOID else F.lit(None).cast(spark_type(wanted))
    if same_type(kind, wanted) and not is_open(kind):
        return column
    if kind == UUID:
        text = F.lower(F.hex(column))
        groups = [text.substr(*part) for part in _PARTS]
        return F.when(column.isNotNull(), F.concat_ws("-", *groups))
    if isinstance(kind, str):
        return column.cast(spark_type(wanted))
    if kind["type"] == "struct":
        parts = [
            converted(column.getField(one["name"]), one["type"], other["type"]).alias(one["name"])
            for one, other in zip(kind["fields"], wanted["fields"], strict=True)
        ]
        return F.when(column.isNotNull(), F.struct(*parts))
    if kind["type"] == "array":
        return F.transform(
            column, lambda one: converted(one, kind["elementType"], wanted["elementType"])
        )
    entries = F.transform(
        F.map_entries(column),
        lambda one: F.struct(
            converted(one["key"], kind["keyType"], wanted["keyType"]).alias("key"),
            converted(one["value"], kind["valueType"], wanted["valueType"]).alias("value"),
        ),
    )
    return F.map_from_entries(entries)
