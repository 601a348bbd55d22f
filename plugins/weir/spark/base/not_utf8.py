"""Texts that are not UTF-8: no door takes them, because other readers would show other texts.

Spark keeps the bytes of a string whatever they are. Text files are looked through as files
(`weir.spark.inputs.text_files`), because their parsers would replace such bytes; here it is
done for the rows of Parquet files and DataFrames.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.spark.base.exact import as_json, quoted
from weir.spark.base.malformed import MALFORMED, fault, malformed

_SHOWN = 80  # characters of the text that a fault shows
_TYPE = "string, because it is not UTF-8"


def mark_texts(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the rows, and in column MALFORMED why a row is none: a text in one of the columns
    `names` is not UTF-8."""
    wanted = set(names)
    fields = [one for one in frame.schema.jsonValue()["fields"] if one["name"] in wanted]
    mark = _mark(frame.sparkSession._jvm, json.dumps(fields))
    if mark is None:
        return frame
    if MALFORMED in frame.columns:
        mark = F.coalesce(F.col(MALFORMED), mark)
    return frame.withColumn(MALFORMED, mark)


@lru_cache(maxsize=64)
def _mark(jvm: object, shape: str) -> Column | None:
    """Return what marks a row of columns in Spark's JSON form; None if they can't have texts. Kept
    for the next append of such rows, as each node of it is a question to the JVM."""
    fields = json.loads(shape)
    columns = quoted([one["name"] for one in fields])
    wrong, faults = F.lit(False), []
    for column, one in zip(columns, fields, strict=True):
        test = _wrong(column, one["type"])
        if test is None:
            continue
        text = column if one["type"] == "string" else as_json(F.struct(column))
        shown = F.make_valid_utf8(F.left(text, F.lit(_SHOWN)))
        wrong = wrong | test
        faults.append(F.when(test, fault(one["name"], shown, _TYPE)))
    if not faults:
        return None
    row = F.make_valid_utf8(as_json(F.struct(*columns)))
    return F.when(wrong, malformed(row, F.coalesce(*faults)))


def _wrong(column: Column, kind: Any) -> Column | None:
    """Return whether a value has a text that is not UTF-8, None if it can't have texts."""
    if isinstance(kind, str):
        return ~F.is_valid_utf8(column) if kind == "string" else None
    if kind["type"] == "struct":
        tests = [_wrong(column.getField(one["name"]), one["type"]) for one in kind["fields"]]
    elif kind["type"] == "array":
        tests = [_any(column, kind["elementType"])]
    else:
        parts = ((F.map_keys(column), "keyType"), (F.map_values(column), "valueType"))
        tests = [_any(part, kind[name]) for part, name in parts]
    whole = None
    for test in tests:
        if test is not None:
            whole = test if whole is None else whole | test
    return whole


def _any(values: Column, kind: Any) -> Column | None:
    if _wrong(F.lit(None), kind) is None:
        return None

    def wrong(one: Column) -> Column:
        test = _wrong(one, kind)
        assert test is not None  # it depends on the type alone
        return F.coalesce(test, F.lit(False))

    return F.exists(values, wrong)
