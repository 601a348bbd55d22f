"""Read streams natively: Spark scans exactly the files that the metadata names.

`_segment`, `_offset` and `_clock` are computed from constants per file
(`weir.spark.reads.data_files`). There is no join, no shuffle, and no sort except for the order that
was asked for (`weir.spark.reads.tasks`).
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from weir.controller.read_plan import FileSlice, Slices, plan_of_stream
from weir.database.connection import Database
from weir.errors import check_choice
from weir.model.names import StreamName
from weir.model.schema import PLACES, SEQ, STREAM, Field, without_metadata
from weir.settings import Settings
from weir.spark.base.ordered_frames import one_after_another
from weir.spark.base.session import moved, private_session
from weir.spark.failures.lost_files import saying_why
from weir.spark.reads.data_files import ADDED, FileConstants, scan_files
from weir.spark.reads.tasks import Task, tasks_by_segment, tasks_in_write_order

ORDERS = ("segment", "stream", "none")
_TASKS_PER_CORE = 4
READING_TASK, _SORT = "_weir_reading_task", "_weir_sort"
_NAME = "_weir_file_name"


class Scan(NamedTuple):
    """The rows of a native scan; with the names of its files if tasks share a folder."""

    frame: DataFrame
    names: list[str]


def read_stream_frame(
    spark: SparkSession,
    database: Database,
    settings: Settings,
    name: StreamName,
    *,
    order: str = "segment",
) -> DataFrame:
    """Return all events of a stream from its head to its present tail, with `_segment`, `_offset`
    and `_clock`.

    `order` "segment": the rows of a segment are in one task, by offset, and so are segments that
    follow one another, so the events of each routing key are in order. "stream": the whole
    DataFrame is in write order (by clock and rank). "none": the order of the files, which is
    fastest.

    Raises NotFound for a stream that does not exist, InvalidInput for another order.
    """

    stream_id, slices, fields = database.snapshot(lambda c: plan_of_stream(c, name))
    with saying_why(database, settings):
        return frame_of(spark, settings.warehouse, stream_id, slices, fields, order=order)


def frame_of(
    spark: SparkSession,
    warehouse: str,
    stream_id: int,
    slices: Sequence[FileSlice],
    fields: list[Field],
    *,
    order: str,
    rank: bool = False,
) -> DataFrame:
    """Return the rows of slices of files in an order of `read_stream_frame`. `rank`: with the ranks
    of the rows in their commits, `_weir_seq`. Raises InvalidInput for an unknown order."""
    check_choice("order", order, ORDERS)
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    more = [*PLACES, *([SEQ] if rank else [])]
    if not slices:
        extra = [StructField(name, LongType()) for name in more]
        return spark.createDataFrame([], StructType([*schema.fields, *extra]))
    resolving = resolving_session(spark)
    tasks: list[list[Task]] = []
    if order != "none":
        most = most_tasks(spark)
        by_segment = order == "segment"
        tasks = (
            tasks_by_segment(slices, most) if by_segment else tasks_in_write_order([slices], most)
        )
    scan = scan_of(
        resolving,
        warehouse,
        Slices("", stream_id, slices, fields),
        schema,
        more,
        0,
        tasks,
        "_metadata.row_index" if order == "segment" else SEQ,
    )
    return moved(in_tasks([scan], tasks) if tasks else scan.frame, spark)


def most_tasks(spark: SparkSession) -> int:
    """Return the number of reading tasks that an ordered read is divided into."""
    return _TASKS_PER_CORE * spark.sparkContext.defaultParallelism


def resolving_session(spark: SparkSession) -> SparkSession:
    """Return a private session in which scans are resolved."""
    # Beyond 32 paths Spark lists files in a job, which costs more than it saves here.
    return private_session(
        spark, {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
    )


def scan_of(
    resolving: SparkSession,
    warehouse: str,
    read: Slices,
    schema: StructType,
    more: Sequence[str],
    number: int,
    tasks: Sequence[Sequence[Task]],
    in_file: str,
) -> Scan:
    """Return the rows of one native scan with the columns of `schema` and `more`. With `tasks`, the
    rows also have their task and their sort number in it, the sum of their file's and of `in_file`.

    `number`: of the stream in the tasks.
    """
    slices = read.slices
    frame = scan_files(resolving, warehouse, read.stream_id, schema, [s.path for s in slices])
    constants = FileConstants([s.path for s in slices])
    if not all(s.whole for s in slices):
        first = constants.sql([s.first_row for s in slices])
        past = constants.sql([s.end_row for s in slices])
        frame = frame.where(f"_metadata.row_index >= {first} AND _metadata.row_index < {past}")
    # If all files have the same segment or commit, the constant needs no array.
    known = {
        STREAM: "'" + read.name + "'",
        "_segment": constants.sql([s.segment_id for s in slices]),
        "_offset": constants.sql([s.start_offset for s in slices]) + " + _metadata.row_index",
        "_clock": constants.sql([s.clock for s in slices]),
        SEQ: SEQ,
    }
    columns = {name: known[name] for name in more}
    names: list[str] = []
    if tasks:
        task_of, added = [0] * len(slices), [0] * len(slices)
        for i, task in enumerate(tasks):
            for part in task:
                if part.stream == number:
                    for file, at in part.slices.items():
                        task_of[file], added[file] = i, at
        columns[READING_TASK] = constants.sql(task_of)
        columns[_SORT] = f"{constants.sql(added)} + {in_file}"
        if not constants.by_folder(task_of):
            columns[_NAME] = "_metadata.file_name"
            names = [s.path.rsplit("/", 1)[1] for s in slices]
    frame = frame.selectExpr(
        f"* EXCEPT ({', '.join(ADDED)})", *(f"{sql} AS {name}" for name, sql in columns.items())
    )
    return Scan(frame, names)


def in_tasks(scans: Sequence[Scan], tasks: Sequence[Sequence[Task]]) -> DataFrame:
    """Return the rows of scans task by task, in each task by their sort numbers.

    The task of a row follows from the names of its folders and its file, so Spark finds the files
    of a task in its plan, and does not read the others.
    """

    def part_of(i: int, part: Task) -> DataFrame:
        frame, names = scans[part.stream]
        frame = frame.where(f"{READING_TASK} = {i}")
        if not names:
            return frame
        listed = ", ".join(f"'{names[file]}'" for file in part.slices)
        return frame.where(f"{_NAME} IN ({listed})").drop(_NAME)

    frames = []
    for i, task in enumerate(tasks):
        parts = [part_of(i, part) for part in task]
        frames.append(reduce(DataFrame.union, parts).coalesce(1).sortWithinPartitions(_SORT))
    return one_after_another(frames).selectExpr(f"* EXCEPT ({READING_TASK}, {_SORT})")
