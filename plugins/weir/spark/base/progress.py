"""Log the progress of a running Spark action every few seconds: rows and bytes so far, or that the
application has no cores yet."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from pyarrow import fs
from pyspark.sql import SparkSession

from weir.database.background import repeating
from weir.spark.base.java import Java
from weir.spark.base.session import is_connect
from weir.warehouse.filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

EVERY = 10.0  # seconds, the interval at which Spark's executors report running tasks to the driver
_ROWS = "number of output rows"  # the name of this metric in each step of Spark's plan
# Spark keeps a thousand queries that have ended. Python asks for each by round trips to the JVM,
# which took longer than the work that it reports; those that run are among the newest.
_NEWEST = 20


@contextmanager
def watched(
    spark: SparkSession,
    what: str,
    say: Callable[[str], None],
    written: tuple[str, str] | None = None,
) -> Iterator[None]:
    """Log the progress of the queries of this application while the block runs; over Spark Connect,
    of those of this session, whose rows nobody counts.

    `written`: a root and the folder below it into which they write, to log the bytes as well.
    """
    going, begun = True, time.monotonic()
    connect = _Told() if is_connect(spark) else None
    told = cast("ProgressHandler", connect)  # which PySpark imports for terminals only

    def step() -> float:
        seconds = time.monotonic() - begun
        size = None if written is None else _bytes(*written)
        so_far = (
            _so_far(spark, size, seconds) if connect is None
            else in_words(None, size, connect.done, connect.tasks, seconds)
        )  # fmt: skip
        line = f"{what}: {so_far}"
        if going:  # or the work has ended while this was counted, and its end was said
            say(line)
        return EVERY

    with repeating("progress", step, first=EVERY, patience=EVERY):
        if connect is not None:
            spark.registerProgressHandler(told)
        try:
            yield
        finally:
            going = False
            if connect is not None:
                spark.removeProgressHandler(told)


class _Told:
    """What a server of Spark Connect tells of the stages of a query, as PySpark calls it."""

    tasks = done = 0

    def __call__(self, stages: "Iterable[StageInfo] | None", **_: object) -> None:
        known = list(stages or ())
        self.tasks = sum(one.num_tasks for one in known)
        self.done = sum(one.num_completed_tasks for one in known)


def wait_for_cores(spark: SparkSession, say: Callable[[str], None]) -> None:
    """Wait until this application has cores. On a cluster that is when one of its tasks has run. A
    server of Spark Connect shares its cores task by task, so nobody waits for ever.

    Call it before taking what others wait for, because these others may hold the cores:
    a reader that has a batch and no cores waits for ever.
    """
    if not is_connect(spark) and not _is_local(spark):
        with watched(spark, "beginning", say):
            spark.range(0, 1, 1, 1).collect()


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local")


def _so_far(spark: SparkSession, size: int | None, seconds: float) -> str:
    jsc: Java = spark.sparkContext._jsc
    # The list includes the driver, which does the work in local mode.
    if not _is_local(spark) and len(jsc.sc().statusTracker().getExecutorInfos()) < 2:
        return "waiting for cores of the cluster"
    stages = jsc.sc().statusStore().activeStages()
    tasks = total = 0
    for i in range(int(stages.length())):
        tasks += int(stages.apply(i).numCompleteTasks())
        total += int(stages.apply(i).numTasks())
    return in_words(_rows(spark), size, tasks, total, seconds)


def in_words(rows: int | None, size: int | None, tasks: int, total: int, seconds: float) -> str:
    """Return how far something is after so many seconds: how much, how fast, and how long it takes
    still, as the tasks that are done let expect. `rows`: None if nobody counts them; `size`: bytes
    written; None if none are."""
    per = max(seconds, 0.001)
    parts = list[str]()
    if rows is not None:
        parts.append(f"{rows:,} rows read ({rows / per:,.0f} a second)")
    if size is not None:
        parts.append(f"{size:,} bytes written ({size / per / 1e6:,.1f} MB a second)")
    parts.append(f"{tasks} of {total} tasks done")
    if 0 < tasks < total:
        left = seconds * (total - tasks) / tasks
        about = f"{left / 60:,.0f} min" if left >= 120 else f"{left:,.0f} s"
        parts.append(f"about {about} left")
    return ", ".join(parts)


def _rows(spark: SparkSession) -> int:
    """Return how many rows the running queries have processed: for each, the count of the step with
    the most.

    The counts of a stage include only finished tasks; those of a query include all tasks.
    """
    store: Java = spark._jsparkSession.sharedState().statusStore()
    queries = store.executionsList(max(0, int(store.executionsCount()) - _NEWEST), _NEWEST)
    rows = 0
    for i in range(int(queries.length())):
        query = queries.apply(i)
        if query.completionTime().isDefined():
            continue
        counts = store.executionMetrics(query.executionId())
        steps = query.metrics()
        seen = [0]
        for k in range(int(steps.length())):
            count = counts.get(steps.apply(k).accumulatorId())
            if str(steps.apply(k).name()) == _ROWS and count.isDefined():
                seen.append(int(str(count.get()).replace(",", "")))
        rows += max(seen)
    return rows


def _bytes(root: str, folder: str) -> int:
    """Return the size of the Parquet files below a folder. Return 0 if they cannot be listed now,
    because Spark is moving and deleting some."""
    system, base = filesystem(root)
    below = fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
    try:
        found = system.get_file_info(below)
    except OSError:
        return 0
    return sum(info.size or 0 for info in found if info.path.endswith(".parquet"))
