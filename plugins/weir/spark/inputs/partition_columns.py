"""Columns that the names of folders hold: `dt=2026-01-01/`, as Hive and Spark write them."""

import json
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from weir.errors import InvalidInput
from weir.inputs.folder_names import Partitions
from weir.model.names import shortened
from weir.model.schema import SEQ, Field
from weir.spark.base.exact import quoted
from weir.spark.base.routing import constant_array

_VALUE = "_weir_partition"


def with_partitions(
    frame: DataFrame, partitions: Partitions, known: Sequence[Field] | None, file_bits: int
) -> DataFrame:
    """Return the rows with the columns that the folders of their files hold. `file_bits`: of the
    rank, below the index of the file.

    A column has the type that it has in the files, or in the stream; else it is text. Raises
    InvalidInput for a value that is none of that type, and for rows whose own value is another one.
    """
    file = F.shiftright(F.col(SEQ), file_bits).cast("int")
    for name, values in partitions.items():
        types = {one.name.lower(): one.dataType for one in _declared(known)}
        own = next((one for one in frame.schema if one.name.lower() == name.lower()), None)
        kind = own.dataType if own else types.get(name.lower(), StringType())
        distinct = sorted(set(values), key=lambda one: (one is not None, one or ""))
        _check_values(frame, name, distinct, kind)
        texts = F.from_json(F.lit(json.dumps(distinct)), "array<string>")
        which = constant_array([distinct.index(one) for one in values])[file].cast("int")
        frame = _with_value(frame, name, texts[which].cast(kind), own)
    return frame


def _declared(known: Sequence[Field] | None) -> list[StructField]:
    fields = [one for one in known or () if one["type"] != "void"]
    return StructType.fromJson({"type": "struct", "fields": fields}).fields


def _check_values(
    frame: DataFrame, name: str, values: Sequence[str | None], kind: DataType
) -> None:
    texts = [(one,) for one in values if one is not None]
    if isinstance(kind, StringType) or not texts:
        return
    given = frame.sparkSession.createDataFrame(texts, "value string")
    wrong = given.where(F.col("value").try_cast(kind).isNull()).head()
    if wrong is not None:
        raise InvalidInput(
            "partition_value_invalid",
            f"a folder is named {name}={shortened(wrong.value)}, but column {name!r} has the type "
            f"{kind.simpleString()}; rename the folder, or append it to another stream.",
        )


def _with_value(frame: DataFrame, name: str, value: Column, own: StructField | None) -> DataFrame:
    if own is None:
        return frame.withColumn(name, value)
    [there] = quoted([own.name])
    both = frame.withColumn(_VALUE, value)
    other = both.where(there.isNotNull() & ~there.eqNullSafe(F.col(_VALUE)))
    if row := other.select(there.cast("string"), F.col(_VALUE).cast("string")).head():
        raise InvalidInput(
            "partition_value_differs",
            f"column {own.name!r} is {shortened(row[0])} in a row of a file whose folder says "
            f"{shortened(row[1])}; correct the file, or its folder.",
        )
    return both.withColumn(own.name, F.col(_VALUE)).drop(_VALUE)
