"""Staging: Spark's tasks write the rows of an attempt below the attempt's own folder.

Each task gives its rows to the kernel (`weir.kernel.writer`), which writes a file for each segment,
with at most a million rows, and says which files these are. Nothing is shuffled, unless many tasks
would write small files. The workers of Spark know no database.
"""

from contextlib import nullcontext
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from weir.arrow.rejected import Origin, of_rows, staged_rejected
from weir.errors import BadRows
from weir.inputs.renamed_columns import or_renamed
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.rejected import MALFORMED
from weir.kernel.schema import cast_column
from weir.kernel.stage import Layout
from weir.model.names import check_user_columns
from weir.model.schema import SEQ, Field
from weir.spark.appends.tasks import write_rows
from weir.spark.base.exact import quoted
from weir.spark.base.in_tasks import Rows
from weir.spark.base.java import Java
from weir.spark.base.left_over import delete_left_over
from weir.spark.base.progress import watched
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.routing import routing_steps, with_ordinals
from weir.spark.base.session import active, is_connect
from weir.spark.inputs.from_tasks import FromTasks

SMALL_FILE = 1 << 20  # bytes: if tasks x segments would make smaller files, rows are shuffled first
MANY_FILES = 256  # ... and if there were more than this many
MANY_SEGMENTS = 64  # a task with more of them, and with much data, sorts its rows before it writes
# Types of which Spark makes the texts that the kernel makes, whatever the session's settings.
_SAME_TEXTS = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)
_ORDINAL, _STEPS = "_weir_ordinal", "_weir_steps"  # columns on the way
_TASK_BYTES = 128 << 20
_UNKNOWN = 1 << 60  # Spark's estimate of the size, in bytes, if it knows nothing


def stage(
    app: Installation,
    opened: list[Attempt],
    rows: DataFrame | FromTasks,
    origin: Origin = of_rows,
) -> list[Staged]:
    """Write rows for the last of the open attempts. Return the appends to commit
    together: that of the events, and that of the rejected rows, whose attempt is added to the open
    ones.

    The ranks of the rows are in `_weir_seq`, in whose order each task has its rows, or the order of
    the partitions, then of their rows. `origin`: see `staged_rejected`. Raises InvalidInput
    for columns that do not fit, BadRows for events of erased keys, and for rejected rows that the
    stream does not quarantine.
    """
    attempt, warehouse = opened[-1], app.settings.warehouse
    frame, fields, read, tasks, size = _source(rows, attempt)
    files = or_renamed(attempt.fields, fields) if isinstance(rows, FromTasks) else nullcontext()
    with files:
        layout = Layout.of(warehouse, attempt, fields)
    layout.fit.announce(app.say)
    by_segment = False
    spark, where = frame.sparkSession, (warehouse, attempt.folder)
    with active(spark), watched(spark, f"appending to {attempt.stream}", app.say, where):
        if read is None and (size is not None or not is_connect(frame)):
            frame, by_segment = _in_order(frame, layout, tasks, size)
        written = write_rows(frame, layout, read=read, by_segment=by_segment)
    staged = layout.staged(written)
    delete_left_over(warehouse, attempt.folder, staged.paths)
    return staged_rejected(app, staged, opened, origin)


class _Source(NamedTuple):
    """The rows of an attempt and their columns. `read`: if tasks read the rows as they write them,
    of whose numbers the frame is; `tasks` and `size`: how many there are, and
    their bytes, if that is known better than by Spark."""

    frame: DataFrame
    fields: list[Field]
    read: Rows | None = None
    tasks: int | None = None
    size: int | None = None


def _source(rows: DataFrame | FromTasks, attempt: Attempt) -> _Source:
    """Return where rows come from. Tasks read them as they write them if Spark need not shuffle
    them."""
    if isinstance(rows, DataFrame):
        check_user_columns(rows.columns)  # a column of its own would be taken for the rank
        frame, tasks, size = rows, None, None
    else:
        folders = len(attempt.segments) + 1
        shuffled = folders > MANY_SEGMENTS or _makes_small_files(rows.count, folders, rows.bytes)
        if rows.rows is None and not shuffled:
            return _Source(rows.tasks, rows.fields, rows.read)
        frame, tasks, size = rows.frame(), rows.count, rows.bytes
    known = {SEQ, MALFORMED}
    fields = [one for one in frame.schema.jsonValue()["fields"] if one["name"] not in known]
    return _Source(frame, fields, tasks=tasks, size=size)


def _makes_small_files(tasks: int, folders: int, size: int) -> bool:
    """Return whether so many tasks would write very many small files."""
    return tasks * folders > MANY_FILES and size < SMALL_FILE * tasks * folders


def _in_order(
    frame: DataFrame, layout: Layout, tasks: int | None, size: int | None
) -> tuple[DataFrame, bool]:
    """Return the rows, and whether each task has them by segment. They are shuffled if each task
    would write many small files, because there is little data or there are many tasks, and sorted
    in their tasks if these would write many files at a time. Spark estimates the size of the data
    if that is not known, unless it comes from outside a plan."""
    folders = len(layout.attempt.segments) + 1
    if tasks is None:
        tasks = _tasks(frame._jdf.queryExecution().executedPlan())
    many_files = tasks * folders > MANY_FILES
    if not many_files and folders <= MANY_SEGMENTS:
        return frame, False
    if size is None:
        size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    if many_files and size >= _UNKNOWN:
        routed = _routed(frame, layout).repartition(_ORDINAL)
    elif _makes_small_files(tasks, folders, size):
        fewer = max(1, min(tasks, size // (8 * SMALL_FILE) + 1))
        routed = _routed(frame, layout).repartition(fewer, _ORDINAL)
    elif folders > MANY_SEGMENTS and size > _TASK_BYTES * tasks:
        routed = _routed(frame, layout)
    else:
        return frame, False
    return routed.sortWithinPartitions(_ORDINAL, SEQ).drop(_ORDINAL), True


def _routed(frame: DataFrame, layout: Layout) -> DataFrame:
    """Return the rows with their ranks, and the number of their segment by its key range. That
    brings them to one task: where they are written, the kernel says."""
    if SEQ not in frame.columns:
        frame = frame.withColumn(SEQ, F.monotonically_increasing_id())
    key = _key(frame, layout)
    by_range = sorted(layout.attempt.segments, key=lambda segment: segment.key_low)
    rejected = F.lit(False)
    if layout.attempt.on_missing_key != "spread":
        rejected = key.isNull()
    if MALFORMED in frame.columns:
        rejected = rejected | F.col(MALFORMED).isNotNull()
    # Without a key the order is not promised: the rank decides.
    steps = F.when(key.isNull(), routing_steps(F.col(SEQ))).otherwise(routing_steps(key))
    frame = with_ordinals(frame.withColumn(_STEPS, steps), _ORDINAL, _STEPS, by_range)
    ordinal = F.when(rejected, len(by_range)).otherwise(F.col(_ORDINAL))
    return frame.withColumn(_ORDINAL, ordinal).drop(_STEPS)


def _key(frame: DataFrame, layout: Layout) -> Column:
    """Return the routing keys of rows as texts, which must be those that the kernel makes: within a
    task, the rows of a segment are in the order of their ranks only if all are sorted by it. Null
    for rows that have none, or of which none can be made."""
    names = [name for name in layout.key.columns if name in layout.schema.names]
    if not names:
        [key] = layout.key.texts(pa.table({"_weir": [None]})).values.to_pylist()
        return F.lit(key).cast("string")
    kind = layout.schema.field(names[0]).type
    if layout.key.transform.plain and any(is_one(kind) for is_one in _SAME_TEXTS):
        return quoted(names)[0].cast("string")

    def texts(*columns: pa.Array) -> pa.Array:
        return _texts(layout, pa.table(list(columns), names))

    with with_own_code(frame.sparkSession):
        # Its hints say to PySpark which kind of function it is.
        return arrow_udf(texts, "string")(*quoted(names))  # type: ignore[call-overload,no-any-return]


def _texts(layout: Layout, rows: pa.Table) -> pa.Array:
    try:
        fitted = [cast_column(rows[name], layout.schema.field(name)) for name in rows.column_names]
    except BadRows:
        if rows.num_rows == 1:  # it becomes no event
            return pa.nulls(1, pa.string())
        return pa.concat_arrays([_texts(layout, rows.take([i])) for i in range(rows.num_rows)])
    return layout.key.texts(pa.table(fitted, rows.column_names)).values.combine_chunks()


def _tasks(plan: Java) -> int:
    """Return the maximum number of tasks of a physical plan without running any part of it. Asking
    Spark for the partitions of a sorted DataFrame would run a part."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        return _tasks(plan.initialPlan())
    if known := int(plan.outputPartitioning().numPartitions()):
        return known
    children = [plan.children().apply(i) for i in range(int(plan.children().length()))]
    if not children:
        return int(plan.execute().getNumPartitions())
    tasks = [_tasks(child) for child in children
             if str(child.getClass().getSimpleName()) != "BroadcastExchangeExec"]  # fmt: skip
    return sum(tasks) if kind == "UnionExec" else max(tasks)
