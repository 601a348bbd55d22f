"""Check routing keys and event times before they are stored: plain columns here, and expressions
with Spark's own parser."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weir.model.names import StreamName, check_user_columns
from weir.model.plain_column import plain_column
from weir.model.schema import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def key_columns(text: str) -> list[str]:
    """Return the columns that a routing key uses. Raises InvalidInput for one that is not allowed,
    and if Spark is needed and not installed."""
    column = plain_column(text)
    if column is None:
        from weir.spark.users.expressions import check_expression

        return check_expression(text, "routing key").columns
    check_user_columns([column])
    return [column]


def check_time(
    stream: StreamName,
    text: str,
    fields: Sequence[Field] | None,
    spark: "Callable[[], SparkSession]",
) -> None:
    """Check the event time that a stream is to have, as `check_event_time` of
    `weir.spark.appends.event_time` does, which is asked about expressions only."""
    column = plain_column(text)
    if column is None:
        from weir.spark.appends.event_time import check_event_time

        return check_event_time(stream, text, fields, spark)
    check_user_columns([column])
    if fields is None:
        return None
    from weir.kernel.event_time import check_type, missing_column

    known = {field["name"].lower(): field for field in fields}
    if column.lower() not in known:
        raise missing_column(stream, text, column, [field["name"] for field in fields])
    return check_type(stream, text, known[column.lower()]["type"])
