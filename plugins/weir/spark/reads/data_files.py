"""Scan data files natively, with constants per file.

Spark reads the names of a file's folders as partition columns, which index arrays in the plan. If a
folder has several files, the rank of a row says in which of them it is: a
bisection over longs, where the name of its file would be a regular expression for each row. A scan
names the fields of `_metadata` that it needs at once, because Spark else makes all of it, per row.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from weir.model.schema import SEQ, Field
from weir.spark.base.bisection import bisected, constant_array
from weir.spark.base.exact import exact, quoted
from weir.spark.base.session import COMPLETE
from weir.spark.base.stored_columns import are_named_so, named_columns, stored_schema
from weir.warehouse.paths import ATTEMPT, SEGMENT, TASK, TRANSACTION, spark_path, stream_folder

ADDED = (SEQ, TRANSACTION, ATTEMPT, SEGMENT, TASK)  # the columns that a scan adds
ROW, NAME = "_weir_row", "_weir_file_name"  # the number of a row in its file, the name of the file
_METADATA = {ROW: "row_index", NAME: "file_name"}
_FOLDERS = re.compile(rf"{TRANSACTION}=([0-9]+)/.*{TASK}=([0-9]+)/[^/]*$")
_SLOT = "_weir_slot"  # of a row's file, if folders have several files
_NEVER = (1 << 63) - 1  # no row has this rank
_FEW, _SLOTS_EACH = 1000, 8  # the largest array by transaction, in total and for each transaction
_MOST_RUNS = 256
_FEW_PARTS = 4  # to compare with so many numbers costs less than to look into an array


def scan_files(
    session: SparkSession,
    warehouse: str,
    stream_id: int,
    fields: Sequence[Field],
    paths: Sequence[str],
    more: Sequence[str] = (),
) -> DataFrame:
    """Return the rows of data files of one stream (paths below the warehouse), with the columns
    `fields`, their ranks, and the columns that `FileConstants` needs (together: `ADDED`); and
    `more` of `ROW` and `NAME`."""
    schema = stored_schema(fields)
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
    jvm = session._jvm
    assert jvm is not None
    text = "\0".join(exact(spark_path(warehouse, path)) for path in paths)
    frame = reader._df(
        reader._jreader.parquet(jvm.java.util.regex.Pattern.compile("\0").split(text))
    )
    # Here, and only what is used: else Spark makes the whole of `_metadata` for each row.
    wanted = [F.expr(f"_metadata.{_METADATA[name]} AS {name}") for name in more]
    if are_named_so(fields):
        return frame.select("*", *wanted) if wanted else frame
    return frame.select(*named_columns(fields), *quoted([one.name for one in folders]), *wanted)


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
    is enough. Files of one folder follow one another by their ranks (semantics 12), so the first
    ranks of the files divide the rows of a folder among its files.
    """

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        """`files`: their paths below the warehouse, and the ranks of their first rows."""
        found = []
        for path, _ in files:
            match = _FOLDERS.search(path)
            assert match is not None, path  # Weir wrote it
            found.append((int(match[1]), int(match[2])))
        tasks: dict[int, list[int]] = {}
        for transaction, task in found:
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
        self.folders = [base[transaction] + task for transaction, task in found]
        self._divide([rank for _, rank in files])

    def _divide(self, first_ranks: Sequence[int]) -> None:
        """Give each file a slot among those of its folder, in the order of their ranks."""
        of_folder: dict[int, list[int]] = {}
        for i, folder in enumerate(self.folders):
            of_folder.setdefault(folder, []).append(i)
        most = max(map(len, of_folder.values()))
        self._each = 1 << (most - 1).bit_length()  # slots of a folder: a power of 2
        self._slots = [folder * self._each for folder in self.folders]
        self._first = [_NEVER] * ((1 + max(self.folders)) * self._each if most > 1 else 0)
        for files in of_folder.values():
            for number, i in enumerate(sorted(files, key=first_ranks.__getitem__)):
                self._slots[i] += number
                if most > 1:
                    self._first[self._slots[i]] = first_ranks[i]

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of `numbered` rows that are none of the files'."""
        return ADDED if self._each == 1 else (*ADDED, _SLOT)

    def numbered(self, frame: DataFrame) -> DataFrame:
        """Return scanned rows with the slot of their file, if folders have several files."""
        if self._each == 1:
            return frame
        first = constant_array(self._first)
        return bisected(
            frame, _SLOT, self._each, lambda place: f"{SEQ} >= {first}[{place}]",
            f"({self.folder}) * {self._each}",
        )  # fmt: skip

    def _shift(self, low: int, high: int) -> str:
        """Return SQL for the shift of the run that contains a row's transaction, by bisection."""
        if high - low == 1:
            return str(self._shifts[low])
        middle = (low + high) // 2
        left, right = self._shift(low, middle), self._shift(middle, high)
        return f"if({TRANSACTION} < {self._runs[middle][0]}, {left}, {right})"

    @property
    def folder(self) -> str:
        """SQL for the number of the folder of a row, as in `folders`; of folders' names alone, so
        Spark finds the files of a folder in its plan."""
        if len(self._base) == 1:
            return f"{TASK} + {self._base[0]}"
        index = f"{TRANSACTION} + {self._shift(0, len(self._runs))}"
        return f"cast({constant_array(self._base)}[{index}] AS int) + {TASK}"

    def by_folder(self, values: Sequence[int]) -> bool:
        """Return whether all files of a folder have the same value, so that the folder decides."""
        known: dict[int, int] = {}
        pairs = zip(self.folders, values, strict=True)
        return all(known.setdefault(folder, value) == value for folder, value in pairs)

    def sql(self, values: Sequence[int]) -> str:
        """Return a SQL expression that gives each of the `numbered` rows the entry of `values` of
        the row's file. `values` has one for each file.

        A text, because each part of a `Column` is a call of its own to the JVM.
        """
        if len(set(values)) == 1:
            return f"cast({values[0]} AS bigint)"
        slot, slots = self.folder, self.folders
        if not self.by_folder(values):
            slot, slots = _SLOT, self._slots
        elif len(self._base) == 1:
            of_folder = sorted(dict(zip(slots, values, strict=True)).items())
            parts = [of_folder[0]]
            parts += [high for low, high in pairwise(of_folder) if low[1] != high[1]]
            if len(parts) <= _FEW_PARTS:
                return _by_bisection(slot, parts)
        array = [0] * (1 + max(slots))
        for index, value in zip(slots, values, strict=True):
            array[index] = value
        return f"{constant_array(array)}[{slot}]"


def _by_bisection(slot: str, parts: Sequence[tuple[int, int]]) -> str:
    """Return SQL for the value of the part that contains a slot. Each part: its first slot and its
    value."""
    if len(parts) == 1:
        return f"cast({parts[0][1]} AS bigint)"
    middle = len(parts) // 2
    left, right = _by_bisection(slot, parts[:middle]), _by_bisection(slot, parts[middle:])
    return f"if({slot} < {parts[middle][0]}, {left}, {right})"
