"""Read several streams as one, in write order."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from weir.controller.merged_columns import merged_columns, own_columns
from weir.controller.read_plan import Slices
from weir.model.schema import PLACES, STREAM, without_metadata
from weir.spark.base.session import moved
from weir.spark.reads.native import (
    in_tasks,
    scan_of,
    scanning_session,
)
from weir.spark.reads.tasks import parts_of_scans, tasks_in_write_order


def merged_frame(
    spark: SparkSession,
    warehouse: str,
    streams: Sequence[Slices],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of several streams in write order: by clock, then by the streams' names, then
    by rank. There is no shuffle.

    The columns: those that all streams have with the same type, or `columns`, which are null in the
    streams that lack them; then `_stream`, `_segment`, `_offset` and `_clock`. A stream that never
    had an event and declares no columns is left out of that. Raises InvalidInput for a column that
    no stream has, or that has several types.
    """
    fields = merged_columns(streams, columns)
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    with_events = sorted((one for one in streams if one.slices), key=lambda one: one.name)
    if not with_events:
        extra = [StructField(STREAM, StringType()), *(StructField(n, LongType()) for n in PLACES)]
        return spark.createDataFrame([], StructType([*schema.fields, *extra]))
    cores = spark.sparkContext.defaultParallelism
    tasks = tasks_in_write_order([one.slices for one in with_events], cores)
    resolving = scanning_session(spark, parts_of_scans(tasks, (), cores))
    scans = [
        scan_of(
            resolving, warehouse, one, own_columns(fields, one), (STREAM, *PLACES), number, tasks,
            by_rank=True,
        )
        for number, one in enumerate(with_events)
    ]  # fmt: skip
    return moved(in_tasks(scans, tasks), spark)
