"""The event times of rows that Spark appends.

If the event time is a column whose statistics in Parquet order it, nothing is added to the files.
For anything else they get a column of their own, `_weir_event_time`, which no reader sees.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructType

from weir.kernel.attempt import Attempt
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import TEXT, TimeColumn, check_type, missing_column
from weir.model.event_time import FIRST, PAST, UNITS
from weir.model.names import StreamName
from weir.model.schema import Field, stored_name
from weir.spark.base.exact import quoted
from weir.spark.base.session import private_session
from weir.spark.users.expressions import Expression, check_expression, with_value


@dataclass(frozen=True)
class Timing:
    """The event time of an attempt's rows. `column`: of its files. `compared`: it is a column of
    timestamps, which are compared as they are."""

    attempt: Attempt
    expression: Expression
    column: TimeColumn
    compared: bool = False

    @property
    def written(self) -> bool:
        """Whether the files get a column with the event times."""
        return self.column.name == TIME

    def added(self, frame: DataFrame, resolving: SparkSession) -> DataFrame:
        """Return the rows, in `resolving`, with their event times in a column, if anything needs
        it."""
        if self.compared or (not self.written and self.attempt.complete_until is None):
            return frame
        rows = with_value(frame, self.expression, TIME, _what(self.attempt), resolving)
        kind = rows.schema[TIME].dataType
        check_type(self.attempt.stream, self.expression.text, kind.jsonValue())
        return rows.withColumn(TIME, _as_time(kind))

    def late(self, event: Column) -> list[Column]:
        """Return an aggregate that counts the late rows among those that are events, if the stream
        is complete to some time."""
        until = self.attempt.complete_until
        if until is None:
            return []
        [time] = quoted([self.column.name if self.compared else TIME])
        first, past = (F.timestamp_micros(F.lit(one)) for one in (FIRST, until))
        return [F.count_if(event & (time >= first) & (time < past)).alias("late")]


def timing_of(attempt: Attempt, given: Sequence[Field], resolving: SparkSession) -> Timing | None:
    """Return the event time of an attempt whose rows have the columns `given`; None if its stream
    has none. It is checked again before each use, as the routing key is."""
    if attempt.event_time is None:
        return None
    expression = check_expression(attempt.event_time, _what(attempt), resolving)
    names = {field["name"].lower(): field for field in given}
    for name in expression.columns:
        if name.lower() not in names:
            raise missing_column(
                attempt.stream, attempt.event_time, name, [field["name"] for field in given]
            )
    column, kind = TimeColumn(TIME, 1), None
    if expression.plain and expression.tree.nameParts().size() == 1:
        field = names[expression.columns[0].lower()]
        check_type(attempt.stream, attempt.event_time, field["type"])
        if isinstance(field["type"], str) and field["type"] in UNITS:
            column, kind = TimeColumn(stored_name(field), UNITS[field["type"]]), field["type"]
    return Timing(attempt, expression, column, kind == "timestamp")


def check_event_time(
    stream: StreamName, text: str, fields: Sequence[Field] | None, spark: Callable[[], SparkSession]
) -> None:
    """Check the event time that a stream is to have; with its columns, if they are known.

    `spark`: called only with columns. Raises InvalidInput for an expression that is not allowed,
    uses another column, or is no time.
    """
    what = f"event time of stream {stream},"
    expression = check_expression(text, what)
    if fields is None:
        return
    names = [field["name"] for field in fields]
    for name in expression.columns:
        if name.lower() not in {known.lower() for known in names}:
            raise missing_column(stream, text, name, names)
    resolving = private_session(spark())
    struct = StructType.fromJson({"type": "struct", "fields": list(fields)})
    frame = resolving.createDataFrame([], struct)
    rows = with_value(frame, expression, TIME, what, resolving)
    check_type(stream, text, rows.schema[TIME].dataType.jsonValue())


def _what(attempt: Attempt) -> str:
    return f"event time of stream {attempt.stream},"


def _as_time(kind: DataType) -> Column:
    """Return the column of values of a type as times; null for a value that is none. The same as
    `weir.kernel.event_time.times_of`."""
    value = F.col(TIME)
    if isinstance(kind, StringType):
        value = F.when(F.trim(value).rlike(rf"\A{TEXT}\z"), F.trim(value))
    time = value.try_cast("timestamp")
    first, past = (F.timestamp_micros(F.lit(one)) for one in (FIRST, PAST))
    return F.when((time >= first) & (time < past), time)
