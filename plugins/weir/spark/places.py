"""The places of events in the results of a consumer: dropped, or used as the order of the rows."""

from collections.abc import Mapping, Set

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlalchemy import Connection, text

from weir.errors import InvalidInput
from weir.reader_groups.table_outputs import ORDER
from weir.spark.expressions import check_expression
from weir.spark.native_read import PLACES
from weir.spark.outputs import Output


def without_places(frame: DataFrame, wanted: Set[str] = frozenset()) -> DataFrame:
    """Return the rows without the places that a read has added, except for `wanted` ones.

    A function that returns only some of them has chosen them, so they stay.
    """
    if not set(PLACES) <= set(frame.columns):
        return frame
    return frame.drop(*[name for name in PLACES if name not in wanted])


def with_order(frame: DataFrame) -> DataFrame:
    """Return the rows with two numbers by which they are ordered (`ORDER`): their clock and offset
    if they have their places; otherwise their number in the DataFrame."""
    clock, place = F.lit(0).cast("long"), F.monotonically_increasing_id()
    if set(PLACES) <= set(frame.columns):
        clock, place = F.col("_clock").cast("long"), F.col("_offset").cast("long")
    return frame.withColumns(dict(zip(ORDER, (clock, place), strict=True)))


def check_last_row_known(connection: Connection, group: str, order: str, output: Output) -> None:
    """Check that the last row of each key of an upsert is known, as `check_order_known`."""
    streams = connection.execute(
        text(
            """SELECT s.stream_name, s.routing_key FROM reader_group g
            JOIN reader_group_stream USING (group_id) JOIN stream s USING (stream_id)
            WHERE g.name = :group ORDER BY s.stream_id"""
        ),
        {"group": group},
    )
    check_order_known({row.stream_name: row.routing_key for row in streams}, order, output)


def check_order_known(keys: Mapping[str, str], order: str, output: Output) -> None:
    """Check that the last row of each key of an upsert is known, however the events of these
    streams (with their routing keys) are divided between batches, readers and segments. Raises
    InvalidInput.

    Events are in order only if they have the same routing key. So the columns of the routing key
    must be in the key of the table, unless other columns say which row is newer.
    """
    how = output.publication
    if how.newest:
        return
    newer = "add newest=COLUMN with the columns that say which row is newer"
    if order == "none":
        raise InvalidInput(
            "order_unknown",
            f"{output} is upserted, but the consumer reads its events in no order; set order to "
            f"segment or stream, or {newer}.",
        )
    for stream, key in keys.items():
        used = check_expression(key, "routing key").columns
        if not {name.lower() for name in used} <= {name.lower() for name in how.key}:
            raise InvalidInput(
                "order_unknown",
                f"the key of {output} ({', '.join(how.key)}) does not hold the routing key of "
                f"stream {stream} ({key}), so events of one key may be read in any order; "
                f"{newer}.",
            )
