"""Deleting many files at once: the paths are the rows, and executors delete them."""

from collections.abc import Callable, Iterable, Iterator

from pyarrow import fs
from pyspark.sql import SparkSession

from weir.errors import InvalidInput
from weir.warehouse.file_deletion import Delete, Files, delete_here
from weir.warehouse.filesystem import filesystem

FEW = 5_000  # so many files are deleted before executors have begun to


def deleter(spark: Callable[[], SparkSession]) -> Delete:
    """Deletes few files here and many in partitions. The session is made when it is first needed.

    What only Hadoop knows is deleted here, too: executors' Python workers can't reach their JVMs.
    Threads of this process wait for the file system all the same."""

    def delete(files: Files) -> dict[int, str]:
        if len(files) < FEW or any(map(_only_here, {root for root, _ in files})):
            return delete_here(files)
        context = spark().sparkContext
        partitions = min(context.defaultParallelism, len(files) // FEW + 1)
        # In order, so that the files of one folder are in one partition.
        failed = context.parallelize(list(enumerate(files)), partitions).mapPartitions(_delete)
        return dict(failed.collect())

    return delete


def _only_here(root: str) -> bool:
    try:
        return isinstance(filesystem(root)[0], fs.PyFileSystem)
    except InvalidInput:  # which is told of each of its files
        return False


def _delete(files: Iterable[tuple[int, tuple[str, str]]]) -> Iterator[tuple[int, str]]:
    """One partition, with a few threads: what takes time is waiting for the file system."""
    numbered = list(files)
    for i, reason in delete_here([file for _, file in numbered]).items():
        yield numbered[i][0], reason
