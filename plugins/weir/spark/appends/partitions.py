"""Write the partitions of a DataFrame in Spark's Python workers, which know no database.

The rows come as batches of Arrow. The rank of a row is as in other appends of DataFrames: the order
of the partitions, then of their rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from weir.kernel.rejected import write_sorted
from weir.kernel.stage import ROWS_PER_FILE, Layout, Written
from weir.warehouse.filesystem import not_writable

_BYTES = 256 << 20  # of the rows that a task has in memory at once
_ROW_BITS = 33  # of a rank, for the row in its partition
INSTEAD = (  # of an expression that Python workers can not compute
    "give the rows a column with its value, and let that column be it, or append in a classic "
    "session of Spark with weir.spark.Appender"
)


@dataclass(frozen=True)
class PartitionWriter:
    """Writes the rows of a task below the folder of an attempt."""

    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Written:
        """Write the rows of this task, and return what was written. Raises Unavailable if the
        warehouse takes no files."""
        context = TaskContext.get()
        assert context is not None, "this runs in a task of Spark"
        task, written = context.partitionId(), Written()
        rank = task << _ROW_BITS
        try:
            for chunk, table in enumerate(_tables(batches)):
                written += write_sorted(self.layout, table, rank, task, chunk)
                rank += table.num_rows
        except OSError as error:
            raise not_writable(self.layout.warehouse, error) from error
        return written


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows as tables, each for a file of its own."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        while rows + batch.num_rows >= ROWS_PER_FILE:
            fits = ROWS_PER_FILE - rows
            yield pa.Table.from_batches([*kept, batch.slice(0, fits)])
            batch = batch.slice(fits)
            kept, rows, size = [], 0, 0
        if batch.num_rows:
            kept.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if size >= _BYTES:
            yield pa.Table.from_batches(kept)
            kept, rows, size = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept)
