"""Input files that Spark's tasks read with the kernel, each some pieces of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weir.errors import InvalidInput
from weir.inputs.files import Inputs
from weir.inputs.rows import MOST_BYTES, Answer, P, grouped
from weir.inputs.values import here, values_of
from weir.kernel.rejected import FAULT, MALFORMED, ROW
from weir.model.schema import SEQ, Field, Struct, new_field
from weir.spark.base.calls import called_in_tasks, numbers, tasks_of
from weir.spark.base.python_workers import with_own_code
from weir.warehouse.filesystem import only_by_jvm

LEAST, MOST = 8 << 20, 128 << 20  # about so many bytes are read by one task
OPENING = 8 << 10  # the cost of opening a file, in bytes


@dataclass(frozen=True)
class FromTasks:
    """Rows that tasks of Spark read: `tasks` has a row for each of so many (`count`), and `read`
    makes the rows with their ranks (`_weir_seq`) and marks (`_weir_malformed`) of these. `fields`:
    the other columns; `bytes`: of the files, of which Spark knows nothing; `rows`: the rows, if
    they are there already, because only the driver reaches the files."""

    tasks: DataFrame
    count: int
    read: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    fields: list[Field]
    bytes: int
    rows: DataFrame | None = None

    def frame(self) -> DataFrame:
        """Return the rows as a DataFrame, each task's in their order."""
        if self.rows is not None:
            return self.rows
        struct, read = struct_of(self.fields), self.read
        names = struct.names  # Spark takes columns by their places

        def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return (batch.select(names) for batch in read(batches))

        with with_own_code(self.tasks.sparkSession):
            return self.tasks.mapInArrow(in_order, struct)


def read_in_tasks(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    parallel: int,
    *,
    quarantine: bool = False,
) -> FromTasks:
    """Return the rows of files. Columns that the stream has (`known`) keep its types. `parallel`:
    how many tasks may run at once; `quarantine`: as of `values_of`, which says what is raised."""
    size = sum(file.bytes for file in inputs.files)
    most = max(LEAST, min(MOST, size // parallel))
    if only_by_jvm(inputs.root):
        return _by_driver(spark, inputs, known, say, size, quarantine)

    def run(function: Callable[[P], Answer], pieces: Sequence[P]) -> list[Answer]:
        return called_in_tasks(spark, function, _groups(pieces, most))

    values = values_of(inputs, known, say, run, most, quarantine=quarantine)
    groups = _groups(values.pieces, most)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in numbers(batches):
            for piece in groups[task]:
                for table in values.tables(piece):
                    yield from table.to_batches()

    return FromTasks(tasks_of(spark, len(groups)), len(groups), read, values.fields, size)


def _by_driver(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    size: int,
    quarantine: bool,
) -> FromTasks:
    if size > MOST_BYTES:
        raise InvalidInput(
            "setting_invalid",
            f"{inputs.root!r} can't be opened by Python on Spark's executors, and the driver reads "
            f"at most {MOST_BYTES:,} bytes of files; install Hadoop's libhdfs there.",
        )
    values = values_of(inputs, known, say, here, MOST_BYTES, quarantine=quarantine)
    tables = [table for piece in values.pieces for table in values.tables(piece)]
    struct = struct_of(values.fields)
    whole = [table.select(struct.names) for table in tables]
    given: object = pa.concat_tables(whole) if whole else []
    rows = spark.createDataFrame(given, struct)
    return FromTasks(rows, 1, iter, values.fields, size, rows)


def _groups(pieces: Sequence[P], most: int) -> list[list[P]]:
    """Return the pieces of each task, which follow one another."""
    return grouped(pieces, [piece.bytes + OPENING for piece in pieces], most)


def struct_of(fields: Sequence[Field]) -> StructType:
    """Return the columns of rows with their ranks and marks as Spark has them."""
    parts = [new_field(name, "string") for name in (ROW, *FAULT)]
    marks: Struct = {"type": "struct", "fields": parts}
    more = [new_field(SEQ, "long"), new_field(MALFORMED, marks)]
    return StructType.fromJson({"type": "struct", "fields": [*fields, *more]})
