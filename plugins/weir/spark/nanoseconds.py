"""Times in nanoseconds, which Spark's times can't hold: read as long, kept in microseconds."""

from collections.abc import Set

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weir.spark.exact import as_json, quoted

# The setting with which Spark reads times in nanoseconds as long. Without it, it refuses the file.
AS_LONG = {"spark.sql.legacy.parquet.nanosAsLong": "true"}
_SECOND = 1_000_000_000


def as_long(schema: StructType, names: Set[str]) -> StructType:
    """Return the types in which Spark reads columns, of which these are in nanoseconds."""
    return StructType(
        [StructField(f.name, LongType()) if f.name in names else f for f in schema.fields]
    )


def in_microseconds(
    frame: DataFrame, schema: StructType, names: Set[str], malformed: str
) -> DataFrame:
    """Return rows whose columns `names` are in nanoseconds with the types of `schema`, in
    microseconds.

    Column `malformed` is added: the row as text if a value of it has more than microseconds, else
    null.
    """
    kept, shown = [], []
    finer: Column = F.lit(False)
    for (column,), field in ((quoted([f.name]), f) for f in schema.fields):
        if field.name not in names:
            kept.append(column)
            shown.append(column)
            continue
        rest = F.coalesce(F.pmod(column, F.lit(1000)), F.lit(0))
        finer = finer | (rest != 0)
        whole = F.timestamp_micros(_quotient(column, 1000))
        kept.append(whole.cast(field.dataType).alias(field.name))
        shown.append(_text(column, field.dataType.simpleString()).alias(field.name))
    more = [name for name in frame.columns if name not in set(schema.fieldNames())]
    row = F.when(finer, as_json(F.struct(*shown))).alias(malformed)
    return frame.select(*kept, row, *quoted(more))


def _quotient(column: Column, divisor: int) -> Column:
    """Return a quotient of longs as a long, rounded down."""
    return F.call_function("div", column - F.pmod(column, F.lit(divisor)), F.lit(divisor))


def _text(column: Column, kind: str) -> Column:
    """Return a time in nanoseconds as text with all its digits."""
    seconds = F.timestamp_seconds(_quotient(column, _SECOND))
    digits = F.lpad(F.pmod(column, F.lit(_SECOND)).cast("string"), 9, "0")
    zone = F.lit("Z" if kind == "timestamp" else "")
    return F.concat(F.date_format(seconds, "yyyy-MM-dd'T'HH:mm:ss."), digits, zone)
