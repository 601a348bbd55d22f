"""Progress of a running Spark action, said every few seconds: events and bytes so far, or that the
cluster has no cores for it yet."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

EVERY = 10.0  # seconds


@contextmanager
def watched(spark: SparkSession, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Say how far the stages of this application are while the block runs."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(EVERY):
            say(f"{what}: {_so_far(spark)}")

    thread = threading.Thread(target=watch, name="weir-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=EVERY)


def wait_for_cores(spark: SparkSession, say: Callable[[str], None]) -> None:
    """Return when this application has cores: on a cluster, when a task of it has run.

    For who takes something that others then wait for: they may have the cores that it waits for.
    """
    if not _is_local(spark):
        with watched(spark, "beginning", say):
            spark.range(0, 1, 1, 1).collect()


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local")


def _so_far(spark: SparkSession) -> str:
    jsc: Any = spark.sparkContext._jsc
    # The driver is listed, too; on one machine it does the work.
    if not _is_local(spark) and len(jsc.sc().statusTracker().getExecutorInfos()) < 2:
        return "waiting for cores of the cluster"
    stages = jsc.sc().statusStore().activeStages()
    events = bytes_ = tasks = total = 0
    for i in range(stages.length()):
        stage = stages.apply(i)
        events += max(stage.outputRecords(), stage.inputRecords())
        bytes_ += max(stage.outputBytes(), stage.inputBytes())
        tasks += stage.numCompleteTasks()
        total += stage.numTasks()
    return f"{events:,} events, {bytes_:,} bytes, {tasks} of {total} tasks so far"
