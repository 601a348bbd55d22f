"""Parquet files that Spark writes where they stay: in an object store renaming is copying."""

import tempfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame


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
