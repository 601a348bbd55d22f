"""Columns as files have them: by the names that they got when they were added (semantics 5.5). The
one place where Spark's rows pass from these names to those that users know, and back."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from weir.model.schema import Field, Kind, new_field, stored_name, without_metadata
from weir.spark.base.exact import quoted

_DEFAULTS = ("EXISTS_DEFAULT", "CURRENT_DEFAULT")  # Spark's names


def are_named_so(fields: Sequence[Field]) -> bool:
    """Return whether all columns have the same names in files, and no defaults."""
    return not any("stored" in field or "default" in field for field in fields)


def stored_schema(fields: Sequence[Field]) -> StructType:
    """Return what Spark is to read of files for these columns, by the names in files. Where a file
    does not have a column, Spark makes it null, or what the metadata says."""
    found = []
    for field in without_metadata(list(fields)):
        name = stored_name(field)
        if name or "stored" not in field:  # a column may have an empty name
            metadata = {}
            if "default" in field:
                metadata = dict.fromkeys(_DEFAULTS, _literal(field["type"], field["default"]))
            found.append({**field, "name": name, "metadata": metadata})
    return StructType.fromJson({"type": "struct", "fields": found})


def named_columns(fields: Sequence[Field]) -> list[Column]:
    """Return the columns of `stored_schema` by the names that users know; without the metadata of
    defaults, which would go on into tables that users make. One that is in no file is null."""
    found = []
    for field in without_metadata(list(fields)):
        name = stored_name(field)
        there = name or "stored" not in field
        column = quoted([name])[0] if there else F.lit(None).cast(spark_type(field["type"]))
        found.append(column.alias(field["name"], metadata=field["metadata"]))
    return found


def as_in_files(frame: DataFrame, fields: Sequence[Field]) -> DataFrame:
    """Return rows whose columns have the names that they have in files."""
    stored = {field["name"]: stored_name(field) for field in fields}
    names = [stored.get(name, name) for name in frame.columns]
    return frame if names == frame.columns else frame.toDF(*names)


def _literal(kind: Kind, text: str) -> str:
    """Return SQL for a value that is written as a text."""
    quoted_text = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind == "string":
        return quoted_text
    if kind == "timestamp":
        return f"TIMESTAMP {quoted_text}"
    return f"CAST({quoted_text} AS {spark_type(kind).simpleString()})"


def spark_type(kind: Any) -> DataType:
    """Return a type in Spark's JSON form as an object."""
    return StructType.fromJson({"type": "struct", "fields": [new_field("x", kind)]})["x"].dataType
