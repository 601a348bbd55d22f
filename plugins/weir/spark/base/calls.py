"""Call a function of Weir in tasks of Spark: what only its files are needed for needs no row of
Spark's."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weir.settings import Settings
from weir.spark.base.answers import heard, told
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.session import cores
from weir.spark.failures.causes import raising_own

T = TypeVar("T")
Said = TypeVar("Said")


def for_workers(settings: Settings) -> Settings:
    """Return settings for Spark's workers, without a way to Postgres, and without passwords."""
    return replace(settings, database="", metrics_token="", spark="")


def tasks_of(spark: SparkSession, count: int) -> DataFrame:
    """Return a row for each of so many tasks, with its number."""
    return spark.range(0, count, 1, count)


def numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """Yield the numbers of the tasks whose rows these are."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def divided(spark: SparkSession, items: Sequence[T], least: int) -> list[Sequence[T]]:
    """Return items in parts that follow one another: one for each task that may run at once, of at
    least so many."""
    parts = max(1, min(cores(spark), -(-len(items) // least)))
    size = -(-len(items) // parts)
    return [items[first : first + size] for first in range(0, len(items), size)]


def called_in_tasks(
    spark: SparkSession, function: Callable[[T], Said], groups: Sequence[Sequence[T]]
) -> list[Said]:
    """Call a function with each item of groups, of which each is a task. Return the answers, in the
    order of the items. Raises what the function raised, if that is an error of Weir's."""
    if not groups:
        return []

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in numbers(batches):
            for place, item in enumerate(groups[one]):
                answer = {"task": [one], "place": [place], "answer": [told(function(item))]}
                yield pa.RecordBatch.from_pydict(answer)

    with with_own_code(spark):
        found = tasks_of(spark, len(groups)).mapInArrow(
            task, "task long, place long, answer binary"
        )
    with raising_own():
        rows = found.collect()
    rows.sort(key=lambda row: (row.task, row.place))
    return [heard(row.answer) for row in rows]
