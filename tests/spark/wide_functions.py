"""Functions of consumers that make rows so wide that a small disk can't keep them."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def wide(events: DataFrame) -> DataFrame:
    """Return each event a thousand times, with a long text that can't be packed."""
    many = events.select("k", "n", F.explode(F.sequence(F.lit(1), F.lit(1000))).alias("copy"))
    return many.withColumn("text", F.sha2(F.concat_ws(" ", "k", "n", "copy"), 512))


def _few(frame: DataFrame) -> DataFrame:
    return frame.groupBy("n").agg(F.max("text").alias("text"))


def shuffled(events: DataFrame) -> DataFrame:
    """Move the rows between tasks."""
    return _few(wide(events).repartition(3, "text"))


def sorted_wide(events: DataFrame) -> DataFrame:
    """Sort the rows in a task."""
    return _few(wide(events).coalesce(1).sortWithinPartitions("text").limit(150_000))


def kept(events: DataFrame) -> DataFrame:
    """Keep the rows on disk."""
    return _few(wide(events).persist(StorageLevel.DISK_ONLY))
