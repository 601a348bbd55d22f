"""Deleting many files at once: the paths are the rows, and executors delete them."""

from collections.abc import Callable, Iterable, Iterator

from pyspark.sql import SparkSession

from weir.removal import Delete, Files, delete_here

FEW = 5_000  # so many files are deleted before executors have begun to


def deleter(spark: Callable[[], SparkSession]) -> Delete:
    """Deletes few files here and many in partitions, on any file system that pyarrow knows. The
    session is made when it is first needed."""

    def delete(files: Files) -> dict[int, str]:
        if len(files) < FEW:
            return delete_here(files)
        context = spark().sparkContext
        partitions = min(context.defaultParallelism, len(files) // FEW + 1)
        # In order, so that the files of one folder are in one partition.
        failed = context.parallelize(list(enumerate(files)), partitions).mapPartitions(_delete)
        return dict(failed.collect())

    return delete


def _delete(files: Iterable[tuple[int, tuple[str, str]]]) -> Iterator[tuple[int, str]]:
    """One partition, with a few threads: what takes time is waiting for the file system."""
    numbered = list(files)
    for i, reason in delete_here([file for _, file in numbered]).items():
        yield numbered[i][0], reason
