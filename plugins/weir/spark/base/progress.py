"""Log the progress of a running Spark action every few seconds: rows and bytes so far, or that the
application has no cores yet."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from pyarrow import fs
from pyspark.sql import SparkSession

from weir.database.background import repeating
from weir.spark.base.java import Java
from weir.spark.base.rows_read import TOLD, rows_read
from weir.spark.base.session import is_connect
from weir.warehouse.filesystem import filesystem

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

EVERY = 10.0  # seconds, the interval at which Spark's executors report running tasks to the driver


@contextmanager
def watched(
    spark: SparkSession,
    what: str,
    say: Callable[[str], None],
    written: tuple[str, str] | None = None,
) -> Iterator[None]:
    """Log the progress of the queries of this application while the block runs; over Spark Connect,
    of those of this session, whose rows a server of `serve` counts.

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
            else in_words(connect.rows(spark), size, connect.done, connect.tasks, seconds)
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
    operation: str | None = None

    def __call__(
        self, stages: "Iterable[StageInfo] | None", operation_id: str | None, **_: object
    ) -> None:
        known = list(stages or ())
        self.tasks = sum(one.num_tasks for one in known)
        self.done = sum(one.num_completed_tasks for one in known)
        self.operation = operation_id

    def rows(self, spark: SparkSession) -> int | None:
        """Return how many rows the query has read, if the server tells."""
        with suppress(Exception):  # that a server has ended is said by who waits for the query
            operation, _, rows = (spark.conf.get(TOLD, "") or "").partition(" ")
            if operation == self.operation:
                return int(rows)
        return None


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
    rows = rows_read(spark.sparkContext, spark._jsparkSession)
    return in_words(rows, size, tasks, total, seconds)


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
