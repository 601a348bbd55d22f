"""DataFrames in general: columns by exact names, files by exact paths, one frame after another."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# Spark takes *, ?, [ and { in the name of a file for a pattern, unless it is told not to.
EXACT_PATHS = {"__globPaths__": "false"}


def quoted(names: Sequence[str]) -> list[Column]:
    """Columns by their exact names, whatever characters they have."""
    return [F.col("`" + name.replace("`", "``") + "`") for name in names]


def one_after_another(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all, in this order; each frame keeps tasks of its own."""
    if len(frames) > 1:
        # Where all have a single partition, Spark (since 4.1) reads them in one task together. It
        # does not beside one that is partitioned in another way, such as in no partition at all.
        spark = frames[0].sparkSession
        nothing = spark.createDataFrame(spark.sparkContext.emptyRDD(), frames[0].schema)
        frames = [*frames, nothing]
    return reduce(DataFrame.union, frames)
