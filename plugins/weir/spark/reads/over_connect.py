"""Read over Spark Connect: its Python workers read the slices of files that the client has planned.

A task gets names of files and numbers of rows, never a connection. The tasks and their orders are
those of the native reads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from weir.arrow.read import read_rows
from weir.controller.merged_columns import merged_columns, own_columns
from weir.controller.read_plan import FileSlice, Slices
from weir.errors import check_choice
from weir.kernel.schema import to_read
from weir.model.schema import PLACES, SEQ, STREAM, Field, without_metadata
from weir.settings import Settings
from weir.spark.base.connect import for_workers
from weir.spark.reads.native import ORDERS
from weir.spark.reads.tasks import Task, tasks_by_segment, tasks_in_write_order

_CORES = 8  # nobody tells how many the server has
_IN_WRITE_ORDER = [("_clock", "ascending"), (STREAM, "ascending"), (SEQ, "ascending")]


def frame_over_connect(
    spark: SparkSession, settings: Settings, read: Slices, *, order: str
) -> DataFrame:
    """Return the rows of slices of files like `weir.spark.reads.native.frame_of`."""
    check_choice("order", order, ORDERS)
    fields = read.fields
    sorts = order == "stream"
    tasks = (
        tasks_in_write_order([read.slices], _CORES) if sorts
        else tasks_by_segment(read.slices, _CORES)
    )  # fmt: skip
    return _frame(spark, settings, [read], [fields], fields, tasks, list(PLACES), sorts=sorts)


def merged_over_connect(
    spark: SparkSession,
    settings: Settings,
    streams: Sequence[Slices],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of several streams like `weir.spark.reads.merged.merged_frame`."""
    fields = merged_columns(streams, columns)
    ordered = sorted((one for one in streams if one.slices), key=lambda one: one.name)
    tasks = tasks_in_write_order([one.slices for one in ordered], _CORES)
    own = [own_columns(fields, one) for one in ordered]
    return _frame(spark, settings, ordered, own, fields, tasks, [STREAM, *PLACES], sorts=True)


def _frame(
    spark: SparkSession,
    settings: Settings,
    streams: Sequence[Slices],
    own: Sequence[list[Field]],
    fields: list[Field],
    tasks: Sequence[Sequence[Task]],
    more: list[str],
    *,
    sorts: bool,
) -> DataFrame:
    struct = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    places = [StructField(n, StringType() if n == STREAM else LongType()) for n in more]
    schema = StructType([*struct.fields, *places])
    if not tasks:
        return spark.createDataFrame([], schema)
    parts = [
        [
            (streams[task.stream].name, own[task.stream], task.clocks,
             [streams[task.stream].slices[i] for i in task.slices])
            for task in one
        ]
        for one in tasks
    ]  # fmt: skip
    reads = reader_of(for_workers(settings), parts, schema.names, sorts=sorts)
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(reads, schema)


Part = list[tuple[str, list[Field], tuple[int, int] | None, list[FileSlice]]]


def reader_of(
    settings: Settings, parts: Sequence[Part], names: list[str], *, sorts: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of the workers. Its rows are numbers of parts."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for table in _tables(settings, parts[number], sorts=sorts):
                    yield from table.select(names).to_batches()

    return read


def _tables(settings: Settings, part: Part, *, sorts: bool) -> Iterator[pa.Table]:
    found = []
    for name, fields, clocks, slices in part:
        schema: Any = to_read(fields)
        for one in slices:
            rows = read_rows(settings, one, schema, list(schema.names))
            if clocks is not None:
                low, past = pa.scalar(clocks[0]), pa.scalar(min(clocks[1], (1 << 63) - 1))
                clock = rows["_clock"]
                rows = rows.filter(pc.and_(pc.greater_equal(clock, low), pc.less(clock, past)))
            rows = rows.append_column(STREAM, pa.repeat(pa.scalar(name), rows.num_rows))
            if not sorts:
                yield rows
            else:
                found.append(rows)
    if found:
        yield pa.concat_tables(found).sort_by(_IN_WRITE_ORDER)
