"""Spark sessions: that of a job, and private sessions with settings that Weir fixes.

What Spark computes for Weir must not depend on who runs it. So Weir resolves that in private
sessions. It never changes a setting of the session that a DataFrame comes from, because other
threads use that session at the same time.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from pyspark import RDD, SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from weir.errors import InvalidInput
from weir.spark.base.java import Java, find_java, java_class

# Settings that change what is read or computed. Weir uses these values, and Spark's defaults for
# all other settings, whatever a cluster or a session sets.
FIXED = {
    "spark.sql.session.timeZone": "UTC",  # a time that is cast to text, the hour of a time
    "spark.sql.ansi.enabled": "true",  # an invalid cast or an overflow is an error, not null
    "spark.sql.caseSensitive": "false",  # no two columns of a stream differ only in case
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",  # the scale of a quotient
    "spark.sql.timestampType": "TIMESTAMP_LTZ",  # the type of a TIMESTAMP literal
    "spark.sql.variable.substitute": "false",  # ${...} in a text is not replaced
    "spark.sql.files.ignoreCorruptFiles": "false",  # a file that can't be read is an error
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # patterns of dates and times
    "spark.sql.jsonGenerator.ignoreNullFields": "true",  # to_json
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",  # a struct as text
}
# A private session keeps these settings of the user's session. They change how Spark works, but not
# its results. Without `artifact.`, its tasks would not see the files that its context was given, of
# which one is Weir's code.
_KEPT = tuple(
    f"spark.sql.{name}"
    for name in """adaptive. artifact. autoBroadcastJoinThreshold broadcastTimeout codegen. debug.
    execution. files.max files.min files.openCost parquet.compression. redaction. shuffle.
    sources.parallel ui.""".split()
)
# What logs that a task or its job failed, or was cancelled.
_LOG_FAILURES = tuple(
    f"org.apache.spark.{name}"
    for name in """executor.Executor scheduler.TaskSetManager scheduler.DAGScheduler
        sql.execution.datasources.FileFormatWriter util.Utils storage.BlockManager
        sql.execution.datasources.FileOutputWriter api.python.PythonRunner
        sql.execution.python.ArrowPythonRunner scheduler.TaskSchedulerImpl
        sql.execution.exchange.BroadcastExchangeExec""".split()
)
_CORES = "8"  # of a server that does not tell how many it has
NOTHING: Mapping[str, str] = {}
DATASET = "org.apache.spark.sql.classic.Dataset"
# Weir's own scans fail on files that they can't read, whatever the session's settings say.
COMPLETE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}


# What was made for a session, as long as somebody has it.
_resolving: WeakKeyDictionary[
    SparkSession, dict[tuple[tuple[str, str], ...], tuple[dict[str, str], SparkSession]]
]
_resolving = WeakKeyDictionary()


def start_jvm() -> None:
    """Start the JVM of this process, unless it has one, as the first session does. Raises
    InvalidInput if it would need a Java that is missing or too old."""
    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        find_java()
    SparkContext._ensure_initialized()


def session(name: str, remote: str = "") -> SparkSession:
    """Return the session under spark-submit, or a new one: in this process, with a master that is
    configured outside, or of a Spark elsewhere (`remote`: sc://host:port).

    Raises InvalidInput if it would have to start a Java that is missing or too old, Unavailable if
    nothing answers elsewhere.
    """
    if remote:
        from weir.spark.base.connect import connected  # which needs gRPC

        return connected(remote, FIXED)
    start_jvm()
    if SparkConf().get("spark.master", "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers need Weir
    # PySpark logs some errors as a line of JSON, with a traceback of Java's, before it raises them.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    before = signal.getsignal(signal.SIGINT)
    made = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")  # in consumers' functions, too
        .config(map=_without_waiting())
        .getOrCreate()
    )
    if threading.current_thread() is threading.main_thread() and before is not None:
        # PySpark's own handler calls the JVM in the middle of another call, which fails loudly.
        signal.signal(signal.SIGINT, before)
    _be_quiet(made)
    follow_named_python(made.sparkContext)
    return made


def follow_named_python(context: SparkContext) -> None:
    """Let the workers of a context have the Python that its settings name. PySpark itself looks at
    PYSPARK_PYTHON only, which spark-submit makes of the setting, and which a program that was
    started without it does not have."""
    named = context.getConf().get("spark.pyspark.python")
    if named and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = named


def _without_waiting() -> dict[str, bool | float | int | str | None]:
    """Return the setting by which a new local session starts each task at once.

    Spark lets a task wait for the machine that has its data, and looks again when a task ends; only
    on a cluster does it also look every second. If some tasks of a stage have their data in this
    process, others have theirs on a machine of HDFS, and the last of the former ends, nothing
    starts the latter: the stage hangs.
    """
    if SparkContext._active_spark_context is not None:
        return {}
    conf = SparkConf()
    here = str(conf.get("spark.master", "local")).startswith("local")
    return {"spark.locality.wait": "0"} if here and not conf.contains("spark.locality.wait") else {}


def _be_quiet(spark: SparkSession) -> None:
    """Keep Spark from logging the stack of each failed task, several times: Weir's sentence has the
    cause, and the lines above it are those of the user's function."""
    log4j: Java = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    for name in _LOG_FAILURES:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def private_session(spark: SparkSession, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a new session with Spark's defaults, the settings of `FIXED`, and `settings`.

    It has no function, view or setting of `spark`, except those that say how Spark works (`_KEPT`);
    over Spark Connect it has all that `spark` has, and these settings.
    """
    if is_connect(spark):
        from weir.spark.base.connect import cloned

        return cloned(spark, {**FIXED, **(settings or {})})
    return _private(spark, _kept(spark), settings or {})


def resolving_session(spark: SparkSession, settings: Mapping[str, str] = NOTHING) -> SparkSession:
    """Return a private session in which expressions and scans are checked and resolved: the same
    one each time for the same `settings`, as making one takes longer than what it is for. Nobody
    may change its settings, or make functions or views in it."""
    kept, made_for = _kept(spark), tuple(settings.items())
    copies = _resolving.setdefault(spark, {})
    known, made = copies.get(made_for, (None, None))
    if made is None or known != kept:
        made = _private(spark, kept, settings)
        copies[made_for] = kept, made
    return made


def _kept(spark: SparkSession) -> dict[str, str]:
    return {key: value for key, value in _all(_java(spark)).items() if key.startswith(_KEPT)}


def _private(
    spark: SparkSession, kept: Mapping[str, str], settings: Mapping[str, str]
) -> SparkSession:
    made = _java(spark).newSession()
    conf = made.conf()
    for key in _all(made):
        if key.startswith("spark.sql.") and conf.isModifiable(key):
            conf.unset(key)
    for key, value in {**kept, **FIXED, **settings}.items():
        if conf.isModifiable(key):
            conf.set(key, value)
    return _python(spark, made)


def moved(frame: DataFrame, to: SparkSession) -> DataFrame:
    """Return the same rows in another session. What the first session has resolved stays
    resolved; over Spark Connect, it is resolved again."""
    if is_connect(to):
        made: type[DataFrame] = type(frame)
        return made(frame._plan, to)
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(java_class(to._jvm, DATASET).ofRows(_java(to), plan), to)


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make Spark's parser use the settings of a session, in this thread, while the block runs. Over
    Spark Connect, the server does so."""
    if is_connect(spark):
        yield
        return
    sessions = java_class(spark._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(_java(spark))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def cores(spark: SparkSession) -> int:
    """Return how many tasks may run at once; over Spark Connect, as far as the server says."""
    if is_connect(spark):
        return int(spark.conf.get("spark.default.parallelism", _CORES) or _CORES)
    return int(spark.sparkContext.defaultParallelism)


def is_connect(thing: object) -> bool:
    """Return whether a session or a DataFrame is one of Spark Connect, whose JVM is in another
    process."""
    return type(thing).__module__.startswith("pyspark.sql.connect.")


def check_session(spark: object) -> None:
    """Raise InvalidInput for what is no session of Spark."""
    if not is_connect(spark) and not hasattr(spark, "_jsparkSession"):
        raise InvalidInput(
            "session_unsupported",
            f"the session is a {type(spark).__module__}.{type(spark).__name__}; give a session of "
            "Spark.",
        )


def _java(spark: SparkSession) -> Java:
    java: Java = spark._jsparkSession
    return java


def _all(java: Java) -> dict[str, str]:
    # As one text: each entry of a map of Java's would be three questions to the JVM.
    settings = str(java.conf().getAll().mkString("\0"))
    return dict(one.split(" -> ", 1) for one in settings.split("\0"))


def _python(spark: SparkSession, java: object) -> SparkSession:
    # PySpark uses the newest session for RDD.toDF, so restore the user's.
    before = RDD.toDF
    try:
        return SparkSession(spark.sparkContext, java)
    finally:
        RDD.toDF = before  # type: ignore[method-assign]  # put back what PySpark replaced
