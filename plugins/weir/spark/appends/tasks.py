"""What Spark's tasks do for an append: they write their rows with the kernel, and say what they
wrote.

A worker reaches folders and object stores by pyarrow, and HDFS where Hadoop's libhdfs is installed.
Of other file systems, which only a JVM reaches, it hands the files to the driver, which has one.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from weir.errors import InvalidInput
from weir.kernel.attempt import StagedFile
from weir.kernel.stage import Layout, Written
from weir.kernel.writer import write_batches
from weir.warehouse.filesystem import filesystem, make_folder, not_writable, only_by_jvm

# What a task answers: the paths and contents of files that it hands over, then what it wrote.
_ANSWER = pa.schema([("path", pa.string()), ("content", pa.binary()), ("written", pa.string())])
_TYPES = "path string, content binary, written string"
_PIECE = 8 << 20  # bytes of a file that are handed over at once

Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def write_task(
    layout: Layout, batches: Iterable[pa.RecordBatch], *, by_segment: bool = False
) -> Written:
    """Write the rows of this task of Spark, and return what was written. Raises Unavailable if the
    warehouse takes no files."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task of Spark"
    try:
        return write_batches(layout, batches, context.partitionId(), by_segment=by_segment)
    except OSError as error:
        raise not_writable(layout.warehouse, error) from error


def written_by_tasks(frame: DataFrame, layout: Layout, *, by_segment: bool) -> "Answers":
    """Return what writes the rows of a DataFrame in its tasks, when it is asked."""
    # As one column: PySpark asks the JVM for each, and takes a dot in a name for one of a field.
    rows = frame.selectExpr("struct(*) AS row")
    names = frame.columns

    def named(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in batches:
            yield pa.RecordBatch.from_arrays(one.column(0).flatten(), names)

    return read_and_written(rows, named, layout, by_segment=by_segment)


def read_and_written(
    tasks: DataFrame, read: Rows, layout: Layout, *, by_segment: bool = False
) -> "Answers":
    """Return what reads the rows of each task, and writes them, when it is asked."""
    return Answers(tasks.mapInArrow(_task(layout, read, by_segment), _TYPES), layout)


class Answers:
    """What the tasks of an append have to say."""

    def __init__(self, frame: DataFrame, layout: Layout) -> None:
        self._frame, self._layout = frame, layout

    def collect(self) -> list[Written]:
        """Run the tasks. Return, of each, what the try wrote that Spark counts."""
        root = self._layout.warehouse
        if not only_by_jvm(root):
            return [_written(row.written) for row in self._frame.select("written").collect()]
        found = list[Written]()
        with ExitStack() as open_file:  # at most one
            path, out = "", None
            for row in self._frame.toLocalIterator():
                if out is None or row.path != path:
                    open_file.close()
                    path, out = row.path, None
                if row.written is not None:
                    found.append(_written(row.written))
                    continue
                if out is None:
                    out = open_file.enter_context(_new_file(root, path))
                out.write(bytes(row.content))
        return found


def _new_file(root: str, path: str) -> pa.NativeFile:
    system, base = filesystem(root)
    make_folder(system, f"{base}/{path.rpartition('/')[0]}")
    return system.open_output_stream(f"{base}/{path}")


def _task(layout: Layout, read: Rows, by_segment: bool) -> Rows:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = read(batches)
        try:
            filesystem(layout.warehouse)
        except InvalidInput:  # only a JVM reaches it
            with tempfile.TemporaryDirectory(prefix="weir-") as here:
                there = replace(layout, warehouse=here)
                written = write_task(there, named, by_segment=by_segment)
                for file in (*written.files, *written.rejected):
                    yield from _pieces(Path(here), file.path)
        else:
            written = write_task(layout, named, by_segment=by_segment)
        yield _answer(written=json.dumps(asdict(written)))

    return task


def _pieces(root: Path, path: str) -> Iterator[pa.RecordBatch]:
    with (root / path).open("rb") as file:
        while piece := file.read(_PIECE):
            yield _answer(path=path, content=piece)


def _answer(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ANSWER)


def _written(text: str) -> Written:
    one = json.loads(text)
    files, rejected = (
        tuple(StagedFile(**file) for file in one[name]) for name in ("files", "rejected")
    )
    return Written(files, rejected, one["late"], one["erased"])
