"""Staging: write the rows of an attempt to Parquet files below the attempt's own folder.

There is one file per segment and task, with at most a million rows. Nothing is shuffled: the task
that reads a row writes it to the file of its segment, in the order of the ranks.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weir.errors import InvalidInput, InvariantViolation
from weir.installation.opened import Say
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import count_late
from weir.kernel.stage import DICTIONARY, ROWS_PER_FILE
from weir.model import key_space
from weir.model.event_time import EventTimes
from weir.model.names import check_user_columns
from weir.model.new_columns import fitting, lacking_defaults
from weir.model.schema import SEQ, Field, stored_name
from weir.model.segment import Segment, segment_name
from weir.spark.appends.erased import ERASED, is_erased, refused
from weir.spark.appends.event_time import Timing, timing_of
from weir.spark.appends.written import (
    HASH,
    MOST_DIGESTS,
    check_folders,
    read_footers,
    sums_of_hashes,
    with_hashes,
)
from weir.spark.base.conversion import fit
from weir.spark.base.exact import exact
from weir.spark.base.in_place import write_in_place
from weir.spark.base.malformed import MALFORMED
from weir.spark.base.not_utf8 import mark_texts
from weir.spark.base.ordered_frames import in_order_of, one_after_another
from weir.spark.base.progress import watched
from weir.spark.base.routing import constant_array, routing_steps, segment_ordinal
from weir.spark.base.row_hash import row_hash
from weir.spark.base.session import (
    COMPLETE,
    FAILING_ALONE,
    NOTHING,
    active,
    check_classic,
    moved,
    resolving_session,
    writing_session,
)
from weir.spark.base.stored_columns import (
    as_in_files,
    named_columns,
    stored_schema,
    with_defaults,
)
from weir.spark.users.date_patterns import naming_patterns
from weir.spark.users.expressions import Expression, check_expression, with_expression
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import in_object_store
from weir.warehouse.marker import check_unused
from weir.warehouse.paths import REJECTED_SEGMENT, SEGMENT, TASK, spark_path

log = logging.getLogger("weir.stage")

SMALL_FILE = 1 << 20  # bytes: if tasks x segments would make smaller files, rows are shuffled first
MANY_FILES = 256  # ... and if there were more than this many
# Delta encoding stores the rank in very few bytes; without this, a dictionary is tried first.
PARQUET = {
    "parquet.writer.version": "v2",
    "parquet.dictionary.page.size": str(DICTIONARY),
    f"parquet.enable.dictionary#{SEQ}": "false",
    f"parquet.enable.dictionary#{TIME}": "false",
    # The database says which files count; a file _SUCCESS would remain when all others are deleted.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
# Columns on the way.
KEY, STEPS, ORDINAL, SORT = "_weir_key", "_weir_steps", "_weir_ordinal", "_weir_sort"
_COUNTED = "weir counted"
# The bits of a sort number for the row in its task: the low ones of `monotonically_increasing_id`.
_ROW_BITS = 33
_UNKNOWN = 1 << 60  # Spark's estimate of the size, in bytes, if it knows nothing
# The number of files, and of rows of each, whose keys are checked after writing.
_SAMPLED, _SAMPLED_ROWS = 4, 16


def ranked(frame: DataFrame) -> DataFrame:
    """Return a DataFrame with the rank of each row: the order of its partitions, then of their
    rows."""
    check_classic(frame.sparkSession)
    check_user_columns(frame.columns)  # the rank would replace a column of that name
    return frame.withColumn(SEQ, F.monotonically_increasing_id())


def stage(
    spark: SparkSession,
    warehouse: str,
    attempt: Attempt,
    frame: DataFrame,
    say: Say = log.info,
    *,
    decoded: bool = False,
) -> Staged:
    """Write the rows of an attempt and return what was written. `frame` has the rank of each row in
    `_weir_seq`, and each of its tasks has the rows in the order of their ranks. `decoded`: its
    texts are from text files, which Spark's parsers decode, so that they can only be UTF-8.

    Malformed rows and rows without a routing key go to a folder of their own and are counted in
    `rejected`. Raises InvalidInput for columns that do not fit, BadRows for events of erased keys,
    InvariantViolation if the files do not have the rows that Spark wrote.
    """
    source = frame
    columns: list[Field] = frame.schema.jsonValue()["fields"]
    given = [field for field in columns if field["name"] not in (SEQ, MALFORMED)]
    fit_of = fitting(
        str(attempt.stream), attempt.fields, given, attempt.on_new_column, attempt.dropped
    )
    fit_of.announce(say)
    fields = fit_of.fields
    frame = fit(frame, given, fields, MALFORMED)
    if not decoded:
        frame = mark_texts(frame, [field["name"] for field in given])
    known = {field["name"]: field for field in fields}
    left_open = [field["name"] for field in given if field["name"] not in known]
    given = [known.get(field["name"], field) for field in given]
    given += (defaults := lacking_defaults(fields, given))
    frame = with_defaults(frame, defaults)
    stored = [{**one, "name": stored_name(one)} for one in given if one["name"] in known]
    resolving = resolving_session(spark)
    key = _checked_key(attempt, [field["name"] for field in given], resolving)
    timing = timing_of(attempt, given, resolving)
    check_unused(warehouse, attempt.folder)
    apart = FAILING_ALONE if timing is not None and timing.written else NOTHING
    if len(attempt.segments) == 1:  # see `_write`
        apart = {**apart, "spark.sql.maxConcurrentOutputFileWriters": "2"}
    writing, kept = writing_session(frame, say, more=apart)
    with active(writing):  # whose settings say how csv files are read
        # Of what was given, because planning that takes less time than all that is computed of it.
        tasks = _tasks((source if kept is frame else kept)._jdf.queryExecution().executedPlan())
    frame = kept
    new = attempt.fields is None  # later it is too late to refuse a key
    keyed = with_expression(frame, key, KEY, _what(attempt), resolving, new=new)
    routed = _route(attempt, keyed if timing is None else timing.added(keyed, resolving))
    routed = routed.drop(*left_open) if left_open else routed
    routed = as_in_files(routed, fields)
    computed = {_what(attempt): key.text}
    if timing is not None:
        computed[f"event time of stream {attempt.stream},"] = timing.expression.text
    with active(writing), naming_patterns(computed):
        rows, late, erased, hashes, written = _write(
            moved(routed, writing), tasks, warehouse, attempt, timing, stored, say
        )
    if erased:
        raise refused(warehouse, attempt, erased)
    files = read_footers(warehouse, attempt.folder, None if timing is None else timing.column)
    if written is not None:
        failed = [file for file in files if os.path.basename(file.path) not in written]
        files = [file for file in files if os.path.basename(file.path) in written]
        if failed:  # of tasks that failed: what can't be deleted now is in nobody's way
            delete_here([(warehouse, file.path) for file in failed])
    found = sum(file.events for file in files)
    if found != rows:
        raise InvariantViolation(
            "row_count_differs",
            f"Spark wrote {rows} rows for stream {attempt.stream}, but the files below "
            f"{attempt.folder} have {found}, so nothing was committed; try again.",
        )
    check_folders(attempt, files)
    if not key.plain:
        _check_sample(resolving, warehouse, attempt, key, fields, files)
    files = with_hashes(files, hashes)
    if not files:  # without events no metadata names this folder, so delete what Spark left in it
        delete_here([(warehouse, attempt.folder)])
    staged = Staged(
        attempt,
        tuple(file for file in files if file.segment_id != REJECTED_SEGMENT),
        fields,
        tuple(file for file in files if file.segment_id == REJECTED_SEGMENT),
        added=fit_of.added,
        missing=fit_of.missing,
    )
    if timing is None:
        return staged
    return replace(
        staged,
        times=EventTimes(timing.expression.text, late, attempt.complete_until),
        count_late=partial(count_late, warehouse, staged.files, timing.column),
    )


def _what(attempt: Attempt) -> str:
    return f"routing key of stream {attempt.stream},"


def _ids(attempt: Attempt) -> list[int]:
    """Return the segments of an attempt by range, and last the folder of rejected rows."""
    by_range = sorted(attempt.segments, key=lambda s: s.key_low)
    return [*(s.segment_id for s in by_range), REJECTED_SEGMENT]


def _route(attempt: Attempt, frame: DataFrame) -> DataFrame:
    """Return the rows with their ranks and the index in `_ids` of their destination, by their keys
    (`KEY`, semantics 1.6)."""
    segments = tuple(sorted(attempt.segments, key=lambda s: s.key_low))
    steps, ordinal = _destination(
        frame.sparkSession._jvm, segments, attempt.on_missing_key, MALFORMED in frame.columns
    )
    if attempt.erased is not None:
        erased = is_erased(KEY, attempt.erased, frame.sparkSession)
        frame = frame.withColumn(ERASED, erased)
    return frame.withColumn(STEPS, steps).withColumn(ORDINAL, ordinal).drop(KEY, STEPS)


@lru_cache(maxsize=64)
def _destination(
    jvm: object, segments: tuple[Segment, ...], on_missing_key: str, marked: bool
) -> tuple[Column, Column]:
    """Return the columns of a row's place in the key space, and of the index of its destination.
    They are kept for the next append, as each node of them is a question to the JVM."""
    missing = F.col(KEY).isNull()
    steps = routing_steps(F.col(KEY))
    rejected: Column = F.lit(False)
    if on_missing_key == "spread":  # the order is not promised: the rank decides
        steps = F.when(missing, routing_steps(F.col(SEQ))).otherwise(steps)
    else:
        rejected = missing
    if marked:
        rejected = rejected | F.col(MALFORMED).isNotNull()
    ordinal = F.when(rejected, F.lit(len(segments))).otherwise(segment_ordinal(STEPS, segments))
    return steps, ordinal


def _write(
    routed: DataFrame,
    tasks: int,
    warehouse: str,
    attempt: Attempt,
    timing: Timing | None,
    stored: Sequence[Field],
    say: Say,
) -> tuple[int, int, int, dict[int, int], set[str] | None]:
    """Write the files. Return how many rows Spark counted on the way, how many of them were late
    events, how many were events of erased keys, the sum of the hashes of the rows of each segment,
    and the names of the files that count (None: all that are there). `stored`: the columns that
    the files get."""
    ids = _ids(attempt)
    routed = _in_fewer_tasks(routed, tasks, len(ids))
    event = F.col(ORDINAL) < F.lit(len(ids) - 1)
    late = timing.late(event) if timing else []
    erased, aside = list[Column](), list[str]()  # columns that the files do not get
    if attempt.erased is not None:
        erased, aside = [F.count_if(event & F.col(ERASED)).alias("erased")], [ERASED]
    rows, *places = _places(routed.sparkSession._jvm, tuple(ids))
    sums: list[Column] = []
    if len(ids) - 1 <= MOST_DIGESTS:
        routed = routed.withColumn(HASH, row_hash(stored))
        sums = sums_of_hashes(routed.sparkSession._jvm, ORDINAL, len(ids) - 1)
        aside.append(HASH)
    one, in_place = len(attempt.segments) == 1, in_object_store(warehouse)
    seen: Any = Observation(_COUNTED)
    counting = routed.observe(
        seen if one and not in_place else _COUNTED, rows, *late, *erased, *sums
    )
    out = counting.select("*", *places)
    if timing is not None and not timing.written:
        out = out.drop(TIME)
    what, where = f"appending to {attempt.stream}", (warehouse, attempt.folder)
    with watched(routed.sparkSession, what, say, where):
        if one:
            # A file of events and one of rejected rows are open at once, so nothing is sorted.
            out = out.drop(SORT, ORDINAL, *aside)
            query = out._jdf.queryExecution() if in_place else None
        else:
            # Only one file is open at a time, and Spark need not sort again.
            out, query = in_order_of(out, SORT, ordered=2, dropped=[ORDINAL, *aside])
        options = {**PARQUET, "maxRecordsPerFile": str(ROWS_PER_FILE)}
        folder, by, written = spark_path(warehouse, attempt.folder), (SEGMENT, TASK), None
        if in_place:
            written = write_in_place(out, folder, by, options)
        else:
            out.write.options(**options).partitionBy(*by).parquet(folder)
    # The query that is run has what it counted.
    counted = query.observedMetrics().apply(_COUNTED) if query else seen._jo.getRow()
    found = [int(counted.getLong(i)) for i in range(counted.length())]
    hashes = dict(zip(ids, found[len(found) - len(sums) :], strict=False))
    refused = found[1 + len(late)] if erased else 0
    return found[0], found[1] if late else 0, refused, hashes, written


@lru_cache(maxsize=64)
def _places(jvm: object, ids: tuple[int, ...]) -> tuple[Column, ...]:
    """Return a column that counts rows, and those of their segments, of the numbers of their
    folders, and of the order of both and of the rows. They are kept as in `_destination`."""
    # One number per (task, segment), so that the number alone names the folder in its transaction.
    # Rows are counted first, because Spark would compute the number for rows in the plan itself (of
    # a pandas DataFrame, for example) in the driver, where every task has the number 0.
    task = F.spark_partition_id() * F.lit(len(ids)) + F.col(ORDINAL)
    # The rows of a task come in the order of their ranks.
    row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _ROW_BITS) - 1))
    sort = F.shiftleft(F.col(ORDINAL).cast("long"), _ROW_BITS).bitwiseOR(row)
    segment = constant_array(ids)[F.col(ORDINAL)]
    return (
        F.count(F.lit(1)).alias("rows"), segment.alias(SEGMENT), task.alias(TASK), sort.alias(SORT),
    )  # fmt: skip


def _in_fewer_tasks(routed: DataFrame, tasks: int, folders: int) -> DataFrame:
    """Shuffle the rows if each task would write many small files, because there is little data or
    there are many tasks. Each task has its rows in the order of their ranks then, too. Spark
    estimates the size of the data, unless it comes from outside a plan."""
    if tasks * folders <= MANY_FILES:
        return routed
    size = int(str(routed._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    if size >= _UNKNOWN:
        return routed.repartition(ORDINAL).sortWithinPartitions(SEQ)
    if size >= SMALL_FILE * tasks * folders:
        return routed
    fewer = max(1, min(tasks, size // (8 * SMALL_FILE) + 1))
    return routed.repartition(fewer, ORDINAL).sortWithinPartitions(SEQ)


def _tasks(plan: Any) -> int:
    """Return the maximum number of tasks of a physical plan without running any part of it. Asking
    Spark for the partitions of a sorted DataFrame would run a part."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _tasks(plan.initialPlan())
    if known := plan.outputPartitioning().numPartitions():
        return int(known)
    children = [plan.children().apply(i) for i in range(plan.children().length())]
    if not children:
        return int(plan.execute().getNumPartitions())
    tasks = [_tasks(child) for child in children
             if child.getClass().getSimpleName() != "BroadcastExchangeExec"]  # fmt: skip
    return sum(tasks) if kind == "UnionExec" else max(tasks)


def _check_sample(
    resolving: SparkSession,
    warehouse: str,
    attempt: Attempt,
    key: Expression,
    fields: Sequence[Field],
    files: Sequence[StagedFile],
) -> None:
    """Compute the keys of the first rows of a few files again, from what was written.

    Raises InvariantViolation if a row is in another segment than its key, because then something
    that Weir does not know changes the meaning of the key.
    """
    used = {name.lower() for name in key.columns}
    read = [field for field in fields if field["name"].lower() in used]
    struct = stored_schema(read)
    ranges = {segment.segment_id: segment for segment in attempt.segments}
    parts = []
    for file in [f for f in files if f.segment_id in ranges][:: max(1, len(files) // _SAMPLED)]:
        reader = resolving.read.options(**COMPLETE).schema(struct)
        rows = reader.parquet(exact(spark_path(warehouse, file.path))).limit(_SAMPLED_ROWS)
        rows = rows.select(*named_columns(read))
        found = with_expression(rows, key, KEY, _what(attempt), resolving).where(
            f"{KEY} IS NOT NULL"
        )
        parts.append(found.select(routing_steps(F.col(KEY)), F.lit(file.segment_id), KEY))
    for steps, segment_id, value in one_after_another(parts).collect() if parts else ():
        segment = ranges[segment_id]
        if not segment.key_low <= steps / key_space.STEPS < segment.key_high:
            raise InvariantViolation(
                "key_misplaced",
                f"Spark placed key {value!r} of stream {attempt.stream} in the wrong segment, "
                f"{segment_name(segment_id)}, because a setting of this session changes what the "
                "routing key means, so nothing was committed; append with a session that does not "
                "have it.",
            )


def _checked_key(attempt: Attempt, columns: Sequence[str], resolving: SparkSession) -> Expression:
    """Return the routing key, checked again before each use. The check at the stream's creation
    used the rules of that time."""
    key = check_expression(attempt.routing_key, _what(attempt), resolving)
    known = {column.lower() for column in columns}
    for name in key.columns:
        if name.lower() not in known:
            raise InvalidInput(
                "routing_key_column_missing",
                f"the routing key of stream {attempt.stream} is {attempt.routing_key!r}, but the "
                f"rows have no column {name!r} (they have {', '.join(list(columns)[:8])}); add "
                "it.",
            )
    return key
