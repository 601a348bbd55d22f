"""Delete many files at once, in tasks of Spark."""

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from weir.spark.base.calls import called_in_tasks, divided
from weir.warehouse.file_deletion import Delete, Files, delete_here
from weir.warehouse.filesystem import only_by_jvm

FEW = 5_000  # deleting so many files here takes no longer than starting executors


def deleter(spark: Callable[[], SparkSession]) -> Delete:
    """Return a function that deletes few files in this process, and many on executors. The Spark
    session is created when it is first needed.

    Files that only Hadoop can delete are deleted in this process, because the executors' Python
    workers cannot reach their JVMs. Threads wait for the file system either way.
    """

    def delete(files: Files) -> dict[int, str]:
        if len(files) < FEW or any(map(only_by_jvm, {root for root, _ in files})):
            return delete_here(files)
        # They come sorted, so that the files of one folder are in one task.
        parts = divided(spark(), files, FEW)
        answers = called_in_tasks(spark(), _deleted, [[part] for part in parts])
        failed, before = dict[int, str](), 0
        for part, answer in zip(parts, answers, strict=True):
            failed |= {before + place: reason for place, reason in answer.items()}
            before += len(part)
        return failed

    return delete


def _deleted(files: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Delete files with a few threads, because most of the time is waiting for the file system.
    Return the places of those that can't be deleted, and why."""
    return delete_here(list(files))
