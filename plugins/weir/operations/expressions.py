"""Check routing keys and event times before they are stored: plain columns here, and expressions
with Spark's own parser."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from weir.errors import InvalidInput
from weir.kernel.stage import KEY_TYPES
from weir.model.declared_columns import declared_columns
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


def checked_columns(text: str, key: str | None, spark: "Callable[[], SparkSession]") -> list[Field]:
    """Return declared columns, among which are those of a routing key, if one is given; Spark is
    asked about one that the kernel does not make texts of. Raises InvalidInput if they can't be
    read, or do not fit the key."""
    used = [] if key is None else key_columns(key)
    fields = declared_columns(text)
    types = {field["name"].lower(): field["type"] for field in fields}
    for name in used:
        if name.lower() not in types:
            raise InvalidInput(
                "routing_key_column_missing",
                f"the routing key uses {name!r}, which is not among the columns; declare it, or "
                "choose another routing key.",
            )
    column = None if key is None else plain_column(key)
    if key is not None and (column is None or types[column.lower()] not in KEY_TYPES):
        session = spark()  # which says first if there may be none
        from weir.spark.users.expressions import check_key

        check_key(session, key, fields)
    return fields


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
