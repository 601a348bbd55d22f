"""Staging: the rows of an attempt become Parquet files below the attempt's own folder.

One file per (segment, task) and at most a million rows; nothing is shuffled: a row goes from the
task that read it into the file of its segment, in the order of its rank.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weir.controller.staged import Staged, StagedFile
from weir.controller.transactions import Attempt
from weir.errors import InvalidInput, InvariantViolation
from weir.names import check_user_columns
from weir.schema import Field, merge
from weir.spark.expressions import check_expression
from weir.spark.frames import quoted
from weir.spark.inputs import MALFORMED
from weir.spark.progress import watched
from weir.spark.routing import (
    REJECTED_SEGMENT,
    SEGMENT,
    SEQ,
    TASK,
    constant_array,
    routing_steps,
    segment_ordinal,
)
from weir.spark.session import setting
from weir.warehouse import check_unused, filesystem, spark_path

Say = Callable[[str], None]
log = logging.getLogger("weir.stage")

ROWS_PER_FILE = 1_000_000
SMALL_FILE = 1 << 20  # bytes: if tasks x segments made files below this, rows are shuffled first
MANY_FILES = 256  # ... and if there were more than this many
# Delta encoding stores the rank in next to nothing; a dictionary would be tried first.
PARQUET = {
    "parquet.writer.version": "v2",
    f"parquet.enable.dictionary#{SEQ}": "false",
    # What counts is in the database; a file _SUCCESS would be left when all others are deleted.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_PLACE = re.compile(r"/part-[^/]*(\.c\d+\.)[^/]*$")
_FILE = re.compile(rf"{SEGMENT}=(-?\d+)/{TASK}=\d+/[^/]+\.parquet$")


def ranked(frame: DataFrame) -> DataFrame:
    """A DataFrame with the rank of each row: the order of its partitions, then of their rows."""
    check_user_columns(frame.columns)  # the rank would take the place of one of that name
    return frame.withColumn(SEQ, F.monotonically_increasing_id())


def stage(
    spark: SparkSession, warehouse: str, attempt: Attempt, frame: DataFrame, say: Say = log.info
) -> Staged:
    """Write the rows of an attempt; `frame` has the rank of each row in `_weir_seq`.

    Rows without a routing key, or malformed, go to a folder of their own and are counted in
    `rejected`. Raises InvalidInput for columns that don't fit, InvariantViolation when the files
    don't hold what Spark wrote.
    """
    user = [name for name in frame.columns if name not in (SEQ, MALFORMED)]
    given: list[Field] = frame.select(*quoted(user)).schema.jsonValue()["fields"]
    fields = merge(str(attempt.stream), attempt.fields, given)
    _check_key(attempt, [field["name"] for field in given])
    kept = quoted([name for name in frame.columns if name != SEQ])
    check_unused(warehouse, attempt.folder)
    path = spark_path(warehouse, attempt.folder)
    # A key that is a time is cast to text: the same text in whatever session it is appended.
    with setting(spark, {"spark.sql.session.timeZone": "UTC"}):
        ids, routed = _route(attempt, frame)
        rows = _write(spark, path, routed, kept, ids, attempt, say)
    files = read_footers(warehouse, attempt.folder)
    found = sum(file.events for file in files)
    if found != rows:
        raise InvariantViolation(
            f"Spark wrote {rows} rows for {attempt.stream}, but the files below {attempt.folder} "
            f"hold {found}; nothing was committed."
        )
    _check_folders(attempt, files)
    return Staged(
        attempt,
        tuple(file for file in files if file.segment_id != REJECTED_SEGMENT),
        fields,
        tuple(file for file in files if file.segment_id == REJECTED_SEGMENT),
    )


def _check_folders(attempt: Attempt, files: Sequence[StagedFile]) -> None:
    """A reader finds a file's constants by its folder and its number in it: both name one file."""
    places = Counter(_PLACE.sub(r"\1", file.path) for file in files)
    if places and (most := places.most_common(1)[0])[1] > 1:
        raise InvariantViolation(
            f"two tasks wrote to {most[0]} of {attempt.stream}; nothing was committed."
        )


def _route(attempt: Attempt, frame: DataFrame) -> tuple[list[int], DataFrame]:
    """The segments by ordinal, and the rows with the ordinal of theirs (the last: rejected)."""
    segments = sorted(attempt.segments, key=lambda s: s.key_low)
    try:
        routed = frame.withColumn("_weir_key", F.expr(attempt.routing_key).cast("string"))
    except AnalysisException as error:
        raise InvalidInput(
            f"the routing key {attempt.routing_key!r} of stream {attempt.stream} can't be computed "
            f"of these rows: {str(error).strip().splitlines()[0]}"
        ) from None
    missing = F.col("_weir_key").isNull()
    steps = routing_steps(F.col("_weir_key"))
    rejected: Column = F.lit(False)
    if attempt.on_missing_key == "spread":  # no order promised: placed by rank
        steps = F.when(missing, routing_steps(F.col(SEQ))).otherwise(steps)
    else:
        rejected = missing
    if MALFORMED in frame.columns:
        rejected = rejected | F.col(MALFORMED).isNotNull()
    routed = routed.withColumn("_weir_steps", steps).withColumn(
        "_weir_ordinal",
        F.when(rejected, F.lit(len(segments))).otherwise(segment_ordinal("_weir_steps", segments)),
    )
    return [*(s.segment_id for s in segments), REJECTED_SEGMENT], routed


def _write(
    spark: SparkSession,
    path: str,
    routed: DataFrame,
    kept: Sequence[Column],
    ids: Sequence[int],
    attempt: Attempt,
    say: Say,
) -> int:
    """Write the files; returns how many rows Spark counted on the way."""
    tasks = _tasks(routed) if len(ids) > 8 else 1
    if tasks * len(ids) > MANY_FILES:
        plan: Any = routed._jdf.queryExecution().optimizedPlan()
        size = int(str(plan.stats().sizeInBytes()))
        if size < SMALL_FILE * tasks * len(ids):
            routed = routed.repartition(
                max(1, min(tasks, size // (8 * SMALL_FILE) + 1)), "_weir_ordinal"
            )
    # One number per (task, segment), so that it alone names the folder in its transaction. Counted
    # first: over rows that are in the plan itself (of a pandas DataFrame, say) Spark would compute
    # the number in the driver, where every task is task 0.
    task = F.spark_partition_id() * F.lit(len(ids)) + F.col("_weir_ordinal")
    counted = Observation()
    out = routed.observe(counted, F.count(F.lit(1)).alias("rows")).select(
        *kept,
        F.col(SEQ),
        constant_array(ids)[F.col("_weir_ordinal")].alias(SEGMENT),
        task.alias(TASK),
    )
    with watched(spark, f"appending to {attempt.stream}", say):
        (
            # One file is open at a time, and Spark finds what it would have sorted by itself.
            out.sortWithinPartitions(SEGMENT, TASK, SEQ)
            .write.options(**PARQUET)
            .option("maxRecordsPerFile", ROWS_PER_FILE)
            .partitionBy(SEGMENT, TASK)
            .parquet(path)
        )
    return int(counted.get["rows"])


def _tasks(frame: DataFrame) -> int:
    """How many tasks will write, about: known without running what comes before a shuffle."""
    planned: Any = frame._jdf.queryExecution().executedPlan().outputPartitioning()
    return int(planned.numPartitions()) or frame.rdd.getNumPartitions()


def read_footers(warehouse: str, folder: str) -> list[StagedFile]:
    """The Parquet files below an attempt's folder, from their footers, read once, in parallel."""
    system, base = filesystem(warehouse)
    infos = system.get_file_info(
        fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
    )

    def read(info: fs.FileInfo) -> StagedFile | None:
        match = _FILE.search(info.path)
        if match is None:
            return None
        with system.open_input_file(info.path) as source:
            footer = pq.read_metadata(source)
        if footer.num_rows == 0:
            return None
        leaves = range(footer.num_columns)  # by their paths: a nested field may have that name
        column = next(i for i in leaves if footer.schema.column(i).path == SEQ)
        statistics = [
            footer.row_group(i).column(column).statistics for i in range(footer.num_row_groups)
        ]
        return StagedFile(
            int(match[1]),
            info.path[len(base) + 1 :],
            footer.num_rows,
            info.size,
            min(s.min for s in statistics),
            max(s.max for s in statistics),
        )

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(read, [i for i in infos if i.type == fs.FileType.File]))
    return [file for file in found if file is not None]


def _check_key(attempt: Attempt, columns: Sequence[str]) -> None:
    known = {column.lower() for column in columns}
    for name in check_expression(attempt.routing_key, "routing key"):
        if name.lower() not in known:
            raise InvalidInput(
                f"the routing key of stream {attempt.stream} is {attempt.routing_key!r}, but the "
                f"rows have no column {name!r} (they have {', '.join(list(columns)[:8])})."
            )
