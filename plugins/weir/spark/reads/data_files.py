"""Scan data files natively, with constants per file.

Spark reads the names of a file's folders as partition columns, which index arrays in the plan.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from weir.model.schema import SEQ
from weir.spark.base.exact import exact
from weir.spark.base.session import COMPLETE
from weir.warehouse.paths import ATTEMPT, SEGMENT, TASK, TRANSACTION, spark_path, stream_folder

ADDED = (SEQ, TRANSACTION, ATTEMPT, SEGMENT, TASK)  # the columns that a scan adds
# In a file's name: the number of the file among those of one task and segment.
_PIECE = r"\.c([0-9]+)\."
_FOLDERS = re.compile(rf"{TRANSACTION}=([0-9]+)/.*{TASK}=([0-9]+)/[^/]*{_PIECE}")
_FEW, _SLOTS_EACH = 1000, 8  # the largest array by transaction, in total and for each transaction
_MOST_RUNS = 256


def scan_files(
    session: SparkSession, warehouse: str, stream_id: int, schema: StructType, paths: Sequence[str]
) -> DataFrame:
    """Return the rows of data files of one stream (paths below the warehouse), with the columns of
    `schema`, their ranks, and the columns that `FileConstants` needs (together: `ADDED`)."""
    folders = [
        StructField(SEQ, LongType()),
        StructField(TRANSACTION, IntegerType()),
        StructField(ATTEMPT, IntegerType()),
        StructField(SEGMENT, LongType()),
        StructField(TASK, IntegerType()),
    ]
    reader = session.read.schema(StructType([*schema.fields, *folders])).options(
        basePath=spark_path(warehouse, stream_folder(stream_id)), **COMPLETE
    )
    # As one text, as each entry of a list is a call of its own to the JVM.
    jvm: Any = session._jvm
    text = "\0".join(exact(spark_path(warehouse, path)) for path in paths)
    return reader._df(
        reader._jreader.parquet(jvm.java.util.regex.Pattern.compile("\0").split(text))
    )


def _runs_of(transactions: Sequence[int]) -> list[Sequence[int]]:
    """Divide ascending numbers into runs at the longest gaps, so that an array with a slot for
    each number from the first to the last of a run is not much longer than the run has numbers.

    A recovery leaves a gap of a million; as many appends may not have written to what is read.
    """
    gaps = sorted((high - low, i) for i, (low, high) in enumerate(pairwise(transactions), start=1))
    length = transactions[-1] - transactions[0]
    cuts = [0, len(transactions)]
    most = _FEW + _SLOTS_EACH * len(transactions)
    while gaps and length > most and len(cuts) <= _MOST_RUNS:
        gap, i = gaps.pop()
        length -= gap
        cuts.append(i)
    return [transactions[low:high] for low, high in pairwise(sorted(cuts))]


class FileConstants:
    """Constants per file, found by the transaction and the task in the names of its folders.

    The task number alone names the folder in its transaction, so one slot per (transaction, task)
    is enough. If a folder has several files, the files' names number them.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        found = []
        for path in paths:
            match = _FOLDERS.search(path)
            assert match is not None, path  # Weir wrote it
            found.append((int(match[1]), int(match[2]), int(match[3])))
        tasks: dict[int, list[int]] = {}
        for transaction, task, _ in found:
            tasks.setdefault(transaction, []).append(task)
        self._runs = _runs_of(sorted(tasks))
        self._base: list[int] = []  # per number of a run, one run after the other
        self._shifts: list[int] = []  # per run, the distance from a number to its slot there
        base: dict[int, int] = {}
        slots = 0
        for run in self._runs:
            self._shifts.append(len(self._base) - run[0])
            self._base += [0] * (run[-1] - run[0] + 1)
            for transaction in run:
                low, high = min(tasks[transaction]), max(tasks[transaction])
                base[transaction] = slots - low
                self._base[transaction + self._shifts[-1]] = base[transaction]
                slots += high - low + 1
        self._folders = [base[transaction] + task for transaction, task, _ in found]
        self._piece = [piece for _, _, piece in found]

    def _shift(self, low: int, high: int) -> str:
        """Return SQL for the shift of the run that contains a row's transaction, by bisection."""
        if high - low == 1:
            return str(self._shifts[low])
        middle = (low + high) // 2
        left, right = self._shift(low, middle), self._shift(middle, high)
        return f"if({TRANSACTION} < {self._runs[middle][0]}, {left}, {right})"

    def _slot(self) -> str:
        index = f"{TRANSACTION} + {self._shift(0, len(self._runs))}"
        return f"cast({_array(self._base)}[{index}] AS int) + {TASK}"

    def by_folder(self, values: Sequence[int]) -> bool:
        """Return whether all files of a folder have the same value, so that the folder decides."""
        known: dict[int, int] = {}
        pairs = zip(self._folders, values, strict=True)
        return all(known.setdefault(folder, value) == value for folder, value in pairs)

    def sql(self, values: Sequence[int]) -> str:
        """Return a SQL expression that gives each row the entry of `values` of the row's file.
        `values` has one for each path.

        A text, because each part of a `Column` is a call of its own to the JVM.
        """
        if len(set(values)) == 1:
            return f"cast({values[0]} AS bigint)"
        slot, slots = self._slot(), self._folders
        if not self.by_folder(values):
            pieces = 1 + max(self._piece)
            piece = f"cast(regexp_extract(_metadata.file_name, r'{_PIECE}', 1) AS int)"
            slot = f"({slot}) * {pieces} + {piece}"
            slots = [slots[i] * pieces + piece for i, piece in enumerate(self._piece)]
        array = [0] * (1 + max(slots))
        for index, value in zip(slots, values, strict=True):
            array[index] = value
        return f"{_array(array)}[{slot}]"

    def of(self, values: Sequence[int]) -> Column:
        """Return a column with the value of the file that contains a row, as `sql` does."""
        return F.expr(self.sql(values))


def _array(values: Sequence[int]) -> str:
    """Return SQL for a constant array of longs as one literal. Spark folds it."""
    return f"cast(split('{','.join(map(str, values))}', ',') AS array<bigint>)"
