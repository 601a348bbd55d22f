"""What Spark's tasks do for an append: they write their rows with the kernel, and say what they
wrote."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from weir.kernel.stage import Layout, Written
from weir.kernel.writer import write_batches
from weir.spark.base.in_tasks import Rows, number_of_task, write_in_tasks
from weir.warehouse.filesystem import not_writable


def write_task(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Written:
    """Write the rows of this task of Spark, and return what was written. Raises Unavailable if the
    warehouse takes no files."""
    return _write(layout, batches, number_of_task())


def write_rows(
    frame: DataFrame, layout: Layout, *, read: Rows | None = None, by_segment: bool = False
) -> list[Written]:
    """Write the rows of a DataFrame in its tasks, or those that `read` reads there. Return, of
    each, what the try wrote that Spark counts."""
    task = partial(_write_below, layout, by_segment)
    answers = write_in_tasks(frame, layout.warehouse, task, read)
    return [one.written for one in answers]


def _write_below(
    layout: Layout, by_segment: bool, root: str, batches: Iterable[pa.RecordBatch], task: int
) -> tuple[list[str], Written]:
    there = replace(layout, warehouse=root)
    written = _write(there, batches, task, by_segment=by_segment)
    return [file.path for file in (*written.files, *written.rejected)], written


def _write(
    layout: Layout, batches: Iterable[pa.RecordBatch], task: int, *, by_segment: bool = False
) -> Written:
    try:
        return write_batches(layout, batches, task, by_segment=by_segment)
    except OSError as error:
        raise not_writable(layout.warehouse, error) from error
