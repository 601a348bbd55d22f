"""Delete many files at once: their paths become rows, and executors delete them."""

from collections.abc import Callable, Iterable, Iterator

from pyarrow import fs
from pyspark.sql import SparkSession

from weir.errors import InvalidInput
from weir.warehouse.file_deletion import Delete, Files, delete_here
from weir.warehouse.filesystem import filesystem

FEW = 5_000  # deleting so many files here takes no longer than starting executors


def deleter(spark: Callable[[], SparkSession]) -> Delete:
    """Return a function that deletes few files in this process, and many on executors. The Spark
    session is created when it is first needed.

    Files that only Hadoop can delete are deleted in this process, because the executors' Python
    workers cannot reach their JVMs. Threads wait for the file system either way.
    """

    def delete(files: Files) -> dict[int, str]:
        if len(files) < FEW or any(map(only_here, {root for root, _ in files})):
            return delete_here(files)
        context = spark().sparkContext
        partitions = min(context.defaultParallelism, len(files) // FEW + 1)
        # Sorted, so that the files of one folder are in one partition.
        failed = context.parallelize(list(enumerate(files)), partitions).mapPartitions(_delete)
        return dict(failed.collect())

    return delete


def only_here(root: str) -> bool:
    """Return whether only a process with a JVM can reach the files below a root."""
    try:
        return isinstance(filesystem(root)[0], fs.PyFileSystem)
    except InvalidInput:  # the same error is reported for each of its files
        return False


def _delete(files: Iterable[tuple[int, tuple[str, str]]]) -> Iterator[tuple[int, str]]:
    """Delete the files of one partition with a few threads, because most of the time is waiting for
    the file system."""
    numbered = list(files)
    for i, reason in delete_here([file for _, file in numbered]).items():
        yield numbered[i][0], reason
