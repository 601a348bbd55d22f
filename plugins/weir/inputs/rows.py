"""The rows of input files, in pieces that any process reads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from weir.inputs.files import ROW_BITS
from weir.kernel.rejected import FAULT, MALFORMED, ROW
from weir.model.schema import SEQ, Field

MOST_BYTES = 256 << 20  # of files that one process reads
# A row, and what is wrong with it: the column, the text and the type of its first value.
Bad = tuple[str, str | None, str | None, str | None]
# What `_weir_malformed` has of a row that does not fit.
MARK = pa.struct([(name, pa.string()) for name in (ROW, *FAULT)])


class Piece(Protocol):
    """A part of a file that one process reads."""

    @property
    def file(self) -> int:
        """The index of the file."""

    @property
    def bytes(self) -> int:
        """About how many bytes of the file it is."""


T = TypeVar("T")
P = TypeVar("P", bound=Piece)
Answer = TypeVar("Answer")


class Run(Protocol):
    """Calls a function with each of some pieces, here or elsewhere, and returns its answers."""

    def __call__(self, function: Callable[[P], Answer], pieces: Sequence[P], /) -> list[Answer]: ...


class Values(Protocol):
    """The rows of input files in the types of their columns. Processes may send it on."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """The parts of the files, in the order of their rows."""

    @property
    def fields(self) -> list[Field]:
        """The columns, of which some may have no type yet."""

    def tables(self, piece: Any) -> Iterator[pa.Table]:
        """Yield the rows of a piece with their ranks (`_weir_seq`). Those that do not fit their
        columns are marked (`_weir_malformed`)."""


def grouped(items: Sequence[T], sizes: Iterable[int], most: int) -> list[list[T]]:
    """Return items in groups that follow one another, each of at most so much, or of one item."""
    groups, left = list[list[T]](), 0
    for item, size in zip(items, sizes, strict=True):
        if not groups or left < size:
            groups.append([])
            left = most
        groups[-1].append(item)
        left -= size
    return groups


def ranks_of(file: int, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the ranks of rows by their numbers in a file."""
    return np.asarray(numbers, np.int64) + (file << ROW_BITS)


def marks_of(rows: Sequence[Bad | None]) -> pa.Array:
    """Return the marks of rows that do not fit, null of one that does."""
    names = (ROW, *FAULT)
    return pa.array([one and dict(zip(names, one, strict=True)) for one in rows], MARK)


def with_bad(table: pa.Table, file: int, bad: Mapping[int, Bad]) -> pa.Table:
    """Return rows, and after them those of the file that have no values, by their numbers."""
    if not bad:
        return table
    numbers = sorted(bad)
    known = {SEQ: ranks_of(file, numbers), MALFORMED: marks_of([bad[one] for one in numbers])}
    columns = [known.get(one.name, pa.nulls(len(numbers), one.type)) for one in table.schema]
    return pa.concat_tables([table, pa.table(columns, schema=table.schema)])
