"""Read what was planned as a DataFrame: one stream in an order, or several in write order.

Spark scans the files natively (`weir.spark.reads.native`); over Spark Connect its Python workers
read them (`weir.spark.reads.over_connect`). The tasks and their orders are the same.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from weir.controller.merged_columns import merged_columns, own_columns
from weir.controller.read_plan import Slices
from weir.errors import check_choice
from weir.model.schema import PLACES, SEQ, STREAM, Field, without_metadata
from weir.settings import Settings
from weir.spark.base.session import cores, is_connect, moved
from weir.spark.reads.native import in_tasks, scan_of, scanning_session
from weir.spark.reads.over_connect import read_in_workers
from weir.spark.reads.tasks import Task, parts_of_scans, tasks_by_segment, tasks_in_write_order

ORDERS = ("segment", "stream", "none")


def frame_of(
    spark: SparkSession, settings: Settings, read: Slices, *, order: str, rank: bool = False
) -> DataFrame:
    """Return the rows of slices of files with `_segment`, `_offset` and `_clock`.

    `order` "segment": the rows of a segment are in one task, by offset, and so are segments that
    follow one another, so the events of each routing key are in order; if they are large and more
    than a core's share, they are in tasks that follow one another. "stream": the whole DataFrame
    is in write order (by clock and rank). "none": the order of the files, which is fastest. `rank`:
    with the ranks of the rows in their commits, `_weir_seq`. Raises InvalidInput for another order.
    """
    check_choice("order", order, ORDERS)
    more = [*PLACES, *([SEQ] if rank else [])]
    return _frame(spark, settings, [(read, read.fields)], read.fields, more, order)


def merged_frame(
    spark: SparkSession,
    settings: Settings,
    streams: Sequence[Slices],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of several streams in write order: by clock, then by the streams' names, then
    by rank.

    The columns: those of `merged_columns`, which says what is raised, too; then `_stream`,
    `_segment`, `_offset` and `_clock`.
    """
    fields = merged_columns(streams, columns)
    with_events = sorted((one for one in streams if one.slices), key=lambda one: one.name)
    own = [(one, own_columns(fields, one)) for one in with_events]
    return _frame(spark, settings, own, fields, [STREAM, *PLACES], "stream")


def _frame(
    spark: SparkSession,
    settings: Settings,
    reads: Sequence[tuple[Slices, list[Field]]],
    fields: list[Field],
    more: list[str],
    order: str,
) -> DataFrame:
    """Return the rows of streams, each with its own form of the columns `fields`, and `more`."""
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    for name in more:
        schema = schema.add(StructField(name, StringType() if name == STREAM else LongType()))
    slices = [read.slices for read, _ in reads]
    if not any(slices):
        return spark.createDataFrame([], schema)
    connect, by_rank = is_connect(spark), order == "stream"
    most = cores(spark)
    tasks: list[list[Task]] = []
    if by_rank:
        tasks = tasks_in_write_order(slices, most)
    elif order == "segment" or connect:
        tasks = tasks_by_segment(slices[0], most)
    if connect:
        return read_in_workers(spark, settings, reads, tasks, schema, sorts=by_rank)
    resolving = scanning_session(spark, parts_of_scans(tasks, slices[0], most))
    scans = [
        scan_of(
            resolving, settings.warehouse, read, own, more, number, tasks, by_rank=by_rank
        )
        for number, (read, own) in enumerate(reads)
    ]  # fmt: skip
    return moved(in_tasks(scans, tasks) if tasks else scans[0].rows, spark)
