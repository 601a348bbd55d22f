"""Read over Spark Connect: its Python workers read the slices of files that the client has planned.

A task gets names of files and numbers of rows, never a connection.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice, Slices
from weir.kernel.schema import to_read
from weir.model.schema import SEQ, STREAM, Field
from weir.settings import Settings
from weir.spark.base.calls import for_workers, numbers, tasks_of
from weir.spark.reads.tasks import Task

_IN_WRITE_ORDER = [("_clock", "ascending"), (STREAM, "ascending"), (SEQ, "ascending")]
# What a task reads of a stream: its name and columns, between which clocks, and the files.
_Part = tuple[str, list[Field], tuple[int, int] | None, list[FileSlice]]


def read_in_workers(
    spark: SparkSession,
    settings: Settings,
    reads: Sequence[tuple[Slices, list[Field]]],
    tasks: Sequence[Sequence[Task]],
    schema: StructType,
    *,
    sorts: bool,
) -> DataFrame:
    """Return what tasks read of streams, each with its own form of the columns, sorted in each task
    by write order if it `sorts`."""
    parts: list[list[_Part]] = [
        [
            (read.name, own, one.clocks, [read.slices[i] for i in one.slices])
            for one in task
            for read, own in [reads[one.stream]]
        ]
        for task in tasks
    ]
    names, there = schema.names, for_workers(settings)

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers(batches):
            for table in _tables(there, parts[number], sorts=sorts):
                yield from table.select(names).to_batches()

    return tasks_of(spark, len(parts)).mapInArrow(rows, schema)


def _tables(settings: Settings, part: list[_Part], *, sorts: bool) -> Iterator[pa.Table]:
    found = []
    for name, fields, clocks, slices in part:
        schema = to_read(fields)
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
