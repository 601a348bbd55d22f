"""Times in nanoseconds, which Spark's times can't hold: read as long, kept in microseconds."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.spark.base.exact import as_json, quoted
from weir.spark.base.malformed import malformed as marked

# The setting with which Spark reads times in nanoseconds as long. Without it, it refuses the file.
AS_LONG = {"spark.sql.legacy.parquet.nanosAsLong": "true"}
_SECOND = 1_000_000_000


def in_microseconds(
    frame: DataFrame, names: Sequence[str], times: Mapping[str, str], malformed: str
) -> DataFrame:
    """Return rows of the columns `names`, of which `times` are longs of nanoseconds, with those in
    microseconds and in the types given.

    Column `malformed` is added: the row as text if a value of it has more than microseconds, else
    null.
    """
    kept, shown = [], []
    finer: Column = F.lit(False)
    for column, name in zip(quoted(names), names, strict=True):
        kind = times.get(name)
        if kind is None:
            kept.append(column)
            shown.append(column)
            continue
        rest = F.coalesce(F.pmod(column, F.lit(1000)), F.lit(0))
        finer = finer | (rest != 0)
        whole = F.timestamp_micros(_quotient(column, 1000))
        kept.append(whole.cast(kind).alias(name))
        shown.append(_text(column, kind).alias(name))
    more = [name for name in frame.columns if name not in set(names)]
    row = F.when(finer, marked(as_json(F.struct(*shown)))).alias(malformed)
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
