"""Compare the footers of files with what was recorded: their paths become rows, and executors read
the footers with pyarrow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from pyspark.sql import SparkSession

from weir.spark.base.delete import only_here
from weir.verification.footers import Look, Wrong, look_here
from weir.verification.recorded import Recorded

_SHARE = 500  # files of a partition, at least: a task costs as much as to read the ends of some


def looker(spark: Callable[[], SparkSession], *, few: int = 1) -> Look:
    """Return what looks at footers in one Spark job, or in this process if there are fewer files
    than `few`. The Spark session is created when it is first needed.

    Files that only Hadoop can read are looked at in this process, because the executors' Python
    workers cannot reach their JVMs.
    """

    def look(warehouse: str, files: Sequence[Recorded]) -> list[Wrong]:
        if len(files) < few or only_here(warehouse):
            return look_here(warehouse, files)
        context = spark().sparkContext
        partitions = min(context.defaultParallelism, -(-len(files) // _SHARE))
        rows = context.parallelize(list(enumerate(files)), partitions)
        found = dict(rows.mapPartitions(partial(_look_at_part, warehouse)).collect())
        return [found.get(i, []) for i in range(len(files))]

    return look


def _look_at_part(
    warehouse: str, numbered: Iterable[tuple[int, Recorded]]
) -> Iterator[tuple[int, Wrong]]:
    """Look at the files of one partition; yield what is wrong with those that are not right."""
    part = list(numbered)
    of_part = look_here(warehouse, [file for _, file in part])
    return ((i, wrong) for (i, _), wrong in zip(part, of_part, strict=True) if wrong)
