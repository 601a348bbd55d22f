"""Spark sessions: that of a job, and private ones whose settings Weir fixes itself.

What a routing key means, and what lies in a file, may not depend on who appends. So Weir resolves a
key in a session of its own and writes in another one. It never changes a setting of the session
that a DataFrame comes from: other threads use that one at the same time.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession

from weir.errors import InvalidInput

# What the value of an expression depends on when Spark resolves it. Where a cluster or a session
# sets something else, Weir uses Spark's default, but for these.
RESOLVING = {
    "spark.sql.session.timeZone": "UTC",  # a time that is cast to text, the hour of a time
    "spark.sql.ansi.enabled": "true",  # an invalid cast or an overflow fails, and is no null
    "spark.sql.caseSensitive": "false",  # a stream has no two columns that differ in case only
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",  # the scale of a quotient
    "spark.sql.timestampType": "TIMESTAMP_LTZ",  # the type of a TIMESTAMP literal
    "spark.sql.variable.substitute": "false",  # ${...} in a text is only a text
    "spark.sql.files.ignoreCorruptFiles": "false",  # what can't be read is an error, not nothing
    "spark.sql.files.ignoreMissingFiles": "false",
}
# What the value of an expression depends on when Spark computes it.
COMPUTING = {
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # patterns of dates and times
    "spark.sql.icu.caseMappings.enabled": "true",  # upper, lower and initcap beyond ASCII
    "spark.sql.jsonGenerator.ignoreNullFields": "true",  # to_json
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",  # a struct as text
}
# What a data file is like.
WRITING = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 ends in 2262 for pyarrow
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # one calendar for all readers
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "0",  # one file after the other, in the rows' order
}
# Settings that a session of Weir's own takes over from where it comes from: they say how Spark
# works, not what comes out.
_KEPT = tuple(
    f"spark.sql.{name}"
    for name in """adaptive. autoBroadcastJoinThreshold broadcastTimeout codegen. debug.
    execution. files.max files.min files.openCost parquet.compression. redaction. shuffle.
    sources.parallel ui.""".split()
)
# Weir's own scans fail on what they can't read, whatever the session says.
COMPLETE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}


def session(name: str) -> SparkSession:
    """Return the session under spark-submit, or a new one; its master comes from outside."""
    return (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")  # times mean UTC in consumers' functions, too
        .getOrCreate()
    )


def private_session(spark: SparkSession, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Make a session with Spark's defaults, what `RESOLVING` and `COMPUTING` say, and `settings`.

    It has no function, view or setting of `spark`, but for how Spark works (`_KEPT`).
    """
    made = _java(spark).newSession()
    conf = made.conf()
    kept = {key: value for key, value in _all(_java(spark)).items() if key.startswith(_KEPT)}
    for key in _all(made):
        if key.startswith("spark.sql.") and conf.isModifiable(key):
            conf.unset(key)
    for key, value in {**kept, **RESOLVING, **COMPUTING, **(settings or {})}.items():
        if conf.isModifiable(key):
            conf.set(key, value)
    return _python(spark, made)


def writing_session(
    frame: DataFrame, say: Callable[[str], None], computing: Mapping[str, str] = COMPUTING
) -> tuple[SparkSession, DataFrame]:
    """Make a session that computes the rows of a DataFrame as its own session does and writes them
    as Weir does (`WRITING`). Returns it, and the rows.

    Where the session of the DataFrame differs in what is to be computed beside them (`computing`:
    what a routing key needs), or is to observe the rows, it computes them first, and Spark keeps
    them on disk.
    """
    theirs = frame._jdf.sparkSession()
    trees: Any = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees  # type: ignore[union-attr]
    plan = frame._jdf.queryExecution().analyzed()
    reasons = [f"has {key} = {theirs.conf().get(key)}" for key, value in computing.items()
               if theirs.conf().get(key) != value]  # fmt: skip
    if plan.containsPattern(trees.TreePattern.COLLECT_METRICS()):
        reasons.append("observes them")
    if reasons:
        say(f"the rows are computed first and kept on disk, as their session {reasons[0]}")
        frame = frame.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    made = theirs.cloneSession()
    for key, value in {**computing, **WRITING}.items():
        made.conf().set(key, value)
    return _python(frame.sparkSession, made), frame


def moved(frame: DataFrame, to: SparkSession) -> DataFrame:
    """The same rows in another session. What is resolved in the first one stays resolved."""
    jvm: Any = to._jvm
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(_java(to), plan), to)


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make a session the one whose settings Spark's parser goes by, in this thread."""
    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(_java(spark))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def check_classic(frame: Any) -> None:
    """Raises InvalidInput for a DataFrame of Spark Connect, which has no plan on this side."""
    if not hasattr(frame, "_jdf"):
        raise InvalidInput(
            "frame_unsupported",
            f"the rows are a {type(frame).__module__}.{type(frame).__name__}, but Weir appends "
            "only DataFrames of a Spark session in this process, not of Spark Connect; use "
            "spark-submit.",
        )


def _java(spark: SparkSession) -> Any:
    return spark._jsparkSession


def _all(java: Any) -> dict[str, str]:
    settings = java.conf().getAllAsJava()
    return {str(key): str(value) for key, value in settings.items()}


def _python(spark: SparkSession, java: Any) -> SparkSession:
    # PySpark makes the newest session that of RDD.toDF, which is the user's.
    before = RDD.toDF
    try:
        return SparkSession(spark.sparkContext, java)
    finally:
        RDD.toDF = before  # type: ignore[method-assign]  # put back what PySpark replaced
