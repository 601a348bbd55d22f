"""Parquet files that Spark writes where they stay: in an object store renaming is copying."""

import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from pyspark import SparkContext
from pyspark.sql import DataFrame

_PATIENCE = 60.0  # seconds for tasks that Spark has told to stop


def write_in_place(
    frame: DataFrame, folder: str, partition_by: Sequence[str], options: Mapping[str, str]
) -> set[str]:
    """Write the rows of a DataFrame as Parquet below a folder (a URI), without renaming anything.
    Return the names of the files that count, each of which is unique.

    Spark's own committer writes each file into the folder of the task's attempt, and then renames
    it twice. Here each attempt gives its files names of its own, and says in its commit which they
    are, as Spark's streaming sink does. Whoever is not named here is of an attempt that failed, or
    of one that still runs and does not know that another one was taken.
    """
    jvm: Any = frame.sparkSession._jvm
    spark = jvm.org.apache.spark
    sql = spark.sql.execution
    java: Any = frame._jdf
    session, query = java.sparkSession(), java.queryExecution()
    output = query.analyzed().output()
    none, scala = jvm.scala.Option.empty(), jvm.scala.jdk.javaapi.CollectionConverters
    columns = {output.apply(i).name(): output.apply(i) for i in range(output.length())}
    given = jvm.PythonUtils.toScalaMap(dict(options))
    nothing = jvm.PythonUtils.toScalaMap({})
    with tempfile.TemporaryDirectory(prefix="weir-") as log_folder:
        log = sql.streaming.sinks.FileStreamSinkLog(1, session, f"file://{log_folder}/log", none)
        committer = sql.streaming.ManifestFileCommitProtocol(uuid.uuid4().hex, folder)
        committer.setupManifestOptions(log, 0)
        sql.datasources.FileFormatWriter.write(
            session,
            query.executedPlan(),
            sql.datasources.parquet.ParquetFileFormat(),
            committer,
            getattr(sql.datasources, "FileFormatWriter$OutputSpec")(folder, nothing, output),
            session.sessionState().newHadoopConfWithOptions(given),
            scala.asScala([columns[name] for name in partition_by]).toSeq(),
            none,
            scala.asScala([]).toSeq(),
            given,
            0,
        )
        session.observationManager().tryComplete(query)  # as the listener of a write does
        written = log.allFiles()
        return {unquote(str(one.path()).rpartition("/")[2]) for one in written}


@contextmanager
def tagged(context: SparkContext) -> Iterator[str]:
    """Give the jobs of a block a tag, by which they are found again."""
    tag = f"weir-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield tag
    finally:
        context.removeJobTag(tag)


def all_ended(context: SparkContext, tag: str) -> bool:
    """Return whether each attempt at a task of the last stage of some jobs is known to have ended,
    so that it writes nothing any more. Spark goes on before those do that it has stopped, and of an
    executor that was lost nobody knows."""
    sc: Any = context._jsc.sc()
    jvm: Any = context._jvm
    gateway: Any = context._gateway
    tracker, store = sc.statusTracker(), sc.statusStore()
    until = time.monotonic() + _PATIENCE
    sc.listenerBus().waitUntilEmpty(int(_PATIENCE * 1000))
    stages = [stage for job in tracker.getJobIdsForTag(tag)
              for stage in tracker.getJobInfo(job).get().stageIds()]  # fmt: skip
    nothing, no_numbers = jvm.java.util.ArrayList(), gateway.new_array(jvm.double, 0)
    while stages:
        found = store.stageData(max(stages), False, nothing, False, no_numbers)
        attempts = [found.apply(i) for i in range(found.length())]
        if not any(attempt.numActiveTasks() for attempt in attempts):
            return not any(_lost(store, attempt) for attempt in attempts)
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _lost(store: Any, attempt: Any) -> bool:
    """Return whether an executor was lost that had a task of an attempt at a stage."""
    if not attempt.numFailedTasks():
        return False
    tasks = store.taskList(attempt.stageId(), attempt.attemptId(), 1 << 30)
    reasons = (tasks.apply(i).errorMessage() for i in range(tasks.length()))
    return any(str(one.get()).startswith("ExecutorLostFailure") for one in reasons
               if one.isDefined())  # fmt: skip
