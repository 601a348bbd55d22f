"""DataFrames in general: columns by exact names, files by exact paths, one frame after another."""

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# In the name of a file that is to be read, Spark takes these for a pattern that fits others, too.
# (Its option against that, __globPaths__, reads all files several times: tried.)
_PATTERN = re.compile(r"[\\*?{}\[\]]")

# What JSON must not lose: microseconds, fields that are null; in whatever time zone a session is.
_EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
    "ignoreNullFields": "false",
}


def as_json(column: Column) -> Column:
    """A struct, array or map as JSON text."""
    return F.to_json(column, _EXACT)


def quoted(names: Sequence[str]) -> list[Column]:
    """Columns by their exact names, whatever characters they have."""
    return [F.col("`" + name.replace("`", "``") + "`") for name in names]


def exact(path: str) -> str:
    """A path for reading that means one file, whatever characters it has."""
    return _PATTERN.sub(r"\\\g<0>", path)


def one_after_another(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all, in this order; each frame keeps tasks of its own."""
    if len(frames) > 1:
        # Where all have a single partition, Spark (since 4.1) reads them in one task together. It
        # does not beside one that is partitioned in another way, such as in no partition at all.
        spark = frames[0].sparkSession
        nothing = spark.createDataFrame(spark.sparkContext.emptyRDD(), frames[0].schema)
        frames = [*frames, nothing]
    return reduce(DataFrame.union, frames)
