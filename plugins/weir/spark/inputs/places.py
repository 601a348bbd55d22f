"""Where a row of the input came from, as Spark says it."""

from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from weir.warehouse.paths import spark_path

FILE = "_weir_file_path"  # the column with the file of a row


def file_names(spark: SparkSession, root: str, paths: list[str]) -> list[str]:
    """Return the paths as Spark reports them with the rows: with the host, even if the root leaves
    it out."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path
    system = path(spark_path(root)).getFileSystem(context._jsc.hadoopConfiguration())
    names = [str(system.makeQualified(path(one)).toUri().toString()) for one in paths]
    return ["file:/" + n[5:].lstrip("/") if n.startswith("file:") else n for n in names]


def one_slash(path: Column) -> Column:
    """Return local paths with one slash after `file:`. Spark reports `file:/x` or `file:///x`,
    depending on how the path was built."""
    return F.regexp_replace(path, "^file:/+", "file:/")
