"""Convert columns between types that hold the same values, with native expressions of Spark."""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from weir.inputs.parquet_types import UUID
from weir.kernel.rejected import LEFT_OPEN
from weir.model.schema import VOID, Field, is_open, same_type
from weir.spark.base.exact import as_json, quoted
from weir.spark.base.malformed import fault
from weir.spark.base.malformed import malformed as why_malformed

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


def fit(frame: DataFrame, given: list[Field], fields: list[Field], malformed: str) -> DataFrame:
    """Return rows of the columns `given` in the types of a stream's columns (`fields`,
    `weir.model.schema.fitted`). Those whose types are left open stay as they are.

    A row with a value in a column left open, such as an empty list, is marked in the column
    `malformed`, because the value would be lost.
    """
    types = {field["name"]: field["type"] for field in fields}
    names = [field["name"] for field in given]
    if all(same_type(types.get(field["name"]), field["type"]) for field in given):
        return frame
    kept, lost = [], []
    for column, field in zip(quoted(names), given, strict=True):
        if field["name"] in types:
            wanted = types[field["name"]]
            kept.append(converted(column, field["type"], wanted).alias(field["name"]))
            continue
        kept.append(column)
        if field["type"] != VOID:
            lost.append((field["name"], column))
    more = [name for name in frame.columns if name not in {*names, malformed}]
    marked = [F.col(malformed)] if malformed in frame.columns else []
    if lost:
        whole, row = as_json(F.struct(*quoted(names))), F.lit(None)
        for name, column in reversed(lost):
            text = F.regexp_extract(as_json(F.struct(column.alias("_"))), r"(?s)^.\"_\":(.*).$", 1)
            why = why_malformed(whole, fault(name, text, LEFT_OPEN))
            row = F.when(column.isNotNull(), why).otherwise(row)
        marked = [F.coalesce(*marked, row).alias(malformed)]
    return frame.select(*kept, *marked, *quoted(more))
