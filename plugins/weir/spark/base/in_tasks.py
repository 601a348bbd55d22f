"""Functions of the kernel that get the rows of Spark's tasks, write them, and say what they wrote.

A worker reaches folders and object stores by pyarrow, and HDFS where Hadoop's libhdfs is installed.
Of other file systems, which only a JVM reaches, it hands the files to the driver, which has one.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from weir.errors import InvalidInput
from weir.kernel.folder_files import Folder, FolderFile
from weir.spark.base.answers import heard, told
from weir.spark.base.python_workers import with_own_code
from weir.spark.failures.causes import raising_own
from weir.warehouse.filesystem import filesystem, make_folder, only_by_jvm

# What a task answers: the paths and contents of files that it hands over, then what it wrote.
_ANSWER = pa.schema([("path", pa.string()), ("content", pa.binary()), ("written", pa.binary())])
_TYPES = "path string, content binary, written binary"
# Columns. PySpark asks the JVM for each; more come as one struct, which costs a fifth of an append.
_APART = 100
_PIECE = 8 << 20  # bytes of a file that are handed over at once

Rows = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# Writes the rows of a task below a root, other than what it is told if it hands its files over.
# Returns their paths below the root, and more about them.
Write = Callable[[str, Iterable[pa.RecordBatch], int], tuple[Sequence[str], Any]]


class Answer(NamedTuple):
    """What a task has to say, of the try that Spark counts: `written`, as its function returned it,
    and how many tries there were before."""

    written: Any
    tries_before: int = 0


def write_in_tasks(
    frame: DataFrame, root: str, write: Write, read: Rows | None = None
) -> list[Answer]:
    """Give the rows of a DataFrame to a function in its tasks, which writes them below a root, or
    those that `read` makes of them there. Raises what the function raises, if it is an error of
    Weir."""
    rows, names = frame, frame.columns
    if read is None and len(names) <= _APART:
        # PySpark takes a dot in a name for one of a field.
        rows, read = frame.toDF(*(f"c{i}" for i in range(len(names)))), partial(_named, names)
    elif read is None:
        rows, read = frame.selectExpr("struct(*) AS row"), partial(_taken_apart, names)
    with with_own_code(frame.sparkSession):
        answers = rows.mapInArrow(_task(root, read, write), _TYPES)
    with raising_own():
        if not only_by_jvm(root):
            return [heard(row.written) for row in answers.select("written").collect()]
        return _taken_over(answers, root)


def write_files(frame: DataFrame, folder: Folder) -> tuple[list[FolderFile], list[Answer]]:
    """Write the rows of a DataFrame below a folder in its tasks. Return the files that Spark
    counts, and what the tasks had to say."""
    answers = write_in_tasks(frame, folder.root, partial(_write_below, folder))
    return [file for answer in answers for file in answer.written], answers


def _write_below(
    folder: Folder, root: str, batches: Iterable[pa.RecordBatch], _task: int
) -> tuple[list[str], Any]:
    files = replace(folder, root=root).write(batches)
    return [file.path for file in files], files


def number_of_task() -> int:
    """Return the number of this task of Spark among those of its stage."""
    return _context().partitionId()


def _taken_over(answers: DataFrame, root: str) -> list[Answer]:
    found = list[Answer]()
    with ExitStack() as open_file:  # at most one
        path, out = "", None
        for row in answers.toLocalIterator():
            if out is None or row.path != path:
                open_file.close()
                path, out = row.path, None
            if row.written is not None:
                found.append(heard(row.written))
                continue
            if out is None:
                out = open_file.enter_context(_new_file(root, path))
            out.write(bytes(row.content))
    return found


def _new_file(root: str, path: str) -> pa.NativeFile:
    system, base = filesystem(root)
    make_folder(system, f"{base}/{path.rpartition('/')[0]}")
    return system.open_output_stream(f"{base}/{path}")


def _named(names: list[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for one in batches:
        yield pa.RecordBatch.from_arrays(one.columns, names)


def _taken_apart(names: list[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for one in batches:
        yield pa.RecordBatch.from_arrays(one.column(0).flatten(), names)


def _task(root: str, read: Rows, write: Write) -> Rows:
    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, context = read(batches), _context()
        try:
            filesystem(root)
        except InvalidInput:  # only a JVM reaches it
            with tempfile.TemporaryDirectory(prefix="weir-") as here:
                paths, written = write(here, rows, context.partitionId())
                for path in paths:
                    yield from _pieces(Path(here), path)
        else:
            _, written = write(root, rows, context.partitionId())
        yield _row(written=told(Answer(written, context.attemptNumber())))

    return task


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "this runs in a task of Spark"
    return context


def _pieces(root: Path, path: str) -> Iterator[pa.RecordBatch]:
    with (root / path).open("rb") as file:
        while piece := file.read(_PIECE):
            yield _row(path=path, content=piece)


def _row(**values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ANSWER)
