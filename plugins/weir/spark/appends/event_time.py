"""Check the event time that a stream is to have, where it is an expression of Spark."""

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import check_type, missing_column
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.spark.base.session import private_session
from weir.spark.users.expressions import check_expression, with_value


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
