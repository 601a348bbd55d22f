"""Whether attempts at tasks other than those that Spark counts have written, or still do."""

import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from weir.errors import InvalidInput
from weir.spark.base.in_tasks import Answer
from weir.spark.base.java import Java
from weir.spark.base.session import is_connect

NONE, ENDED, UNKNOWN = "", "ended", "unknown"  # of the other attempts: that there are none, ...
_PATIENCE = 60.0  # seconds for tasks that Spark has told to stop
# Seconds for the Python process of a task that has ended: it may just be closing its files, and
# only then sees that nobody listens.
_CLOSING = 5.0


@contextmanager
def attempts(spark: SparkSession) -> Iterator[Callable[[Sequence[Answer]], str]]:
    """Run a block whose tasks write, and get a function: by what the tasks answer it says what has
    become of attempts that Spark does not count (NONE, ENDED, UNKNOWN).

    Raises InvalidInput over Spark Connect if it starts attempts that nobody can see there.
    """
    if is_connect(spark):
        if str(spark.conf.get("spark.speculation", "false")).lower() == "true":
            raise InvalidInput(
                "setting_invalid",
                "the server of Spark Connect has spark.speculation = true, so tasks that nobody "
                "waits for could write rows of an output twice; start it without.",
            )
        yield lambda answers: UNKNOWN if any(one.tries_before for one in answers) else NONE
        return
    context, tag = spark.sparkContext, f"weir-{uuid.uuid4().hex}"
    if re.fullmatch(r"local(\[[^,]*\])?", str(context.master)):  # each task is tried once
        yield lambda _: NONE
        return
    context.addJobTag(tag)
    try:
        yield lambda _: _others(context, tag)
    finally:
        context.removeJobTag(tag)


def _others(context: SparkContext, tag: str) -> str:
    """Return what has become of the attempts at tasks of the last stage of some jobs that Spark
    does not count. Spark goes on before those have ended that it has stopped, and of an executor
    that was lost nobody knows."""
    sc: Java = context._jsc.sc()
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None
    assert gateway is not None
    tracker, store = sc.statusTracker(), sc.statusStore()
    until = time.monotonic() + _PATIENCE
    sc.listenerBus().waitUntilEmpty(int(_PATIENCE * 1000))
    stages = [int(stage) for job in tracker.getJobIdsForTag(tag)
              for stage in tracker.getJobInfo(job).get().stageIds()]  # fmt: skip
    nothing, no_numbers = jvm.java.util.ArrayList(), gateway.new_array(jvm.double, 0)
    while stages:
        found = store.stageData(max(stages), False, nothing, False, no_numbers)
        tried = [found.apply(i) for i in range(int(found.length()))]
        if not any(int(one.numActiveTasks()) for one in tried):
            if any(_lost(store, one) for one in tried):
                return UNKNOWN
            if not any(int(one.numFailedTasks()) or int(one.numKilledTasks()) for one in tried):
                return NONE
            time.sleep(_CLOSING)
            return ENDED
        if time.monotonic() > until:
            return UNKNOWN
        time.sleep(0.1)
    return NONE


def _lost(store: Java, attempt: Java) -> bool:
    """Return whether an executor was lost that had a task of an attempt at a stage."""
    if not int(attempt.numFailedTasks()):
        return False
    tasks = store.taskList(attempt.stageId(), attempt.attemptId(), 1 << 30)
    reasons = (tasks.apply(i).errorMessage() for i in range(int(tasks.length())))
    return any(str(one.get()).startswith("ExecutorLostFailure") for one in reasons
               if one.isDefined())  # fmt: skip
