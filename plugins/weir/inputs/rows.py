"""The rows of input files in this process, each with its rank."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.inputs.files import ROW_BITS
from weir.kernel.rejected import FAULT, ROW
from weir.model.schema import Field

# Bytes of files that one process reads, and of what they have when they are not compressed.
MOST_BYTES, MOST_PLAIN = 256 << 20, 1 << 30

# A row, and what is wrong with it: the column, the text and the type of its first value.
Bad = tuple[str, str | None, str | None, str | None]
_MARK = pa.struct([(name, pa.string()) for name in (ROW, *FAULT)])


@dataclass(frozen=True)
class Rows:
    """The rows of files, in the order of their ranks. `fields`: their columns, of which some may
    have no type yet; `tables`: the rows with their ranks (`_weir_seq`), and marks of those that do
    not fit (`_weir_malformed`)."""

    fields: list[Field]
    tables: Iterable[pa.Table]


def ranks_of(file: int, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the ranks of rows by their numbers in a file."""
    return np.asarray(numbers, np.int64) + (file << ROW_BITS)


def marks_of(rows: Sequence[Bad | None]) -> pa.Array:
    """Return the marks of rows that do not fit, null of one that does."""
    names = (ROW, *FAULT)
    return pa.array([one and dict(zip(names, one, strict=True)) for one in rows], _MARK)


def needs_spark(why: str) -> InvalidInput:
    """Return the error for files that only Spark appends."""
    return InvalidInput("ingest_needs_spark", f"{why}; {give(engine='spark')}.")


def check_size(plain_bytes: int) -> None:
    """Raise InvalidInput for more bytes than one process reads, uncompressed."""
    if plain_bytes > MOST_PLAIN:
        raise needs_spark(
            f"the files have more than {MOST_PLAIN >> 20:,} MiB uncompressed, which is more than "
            "one process reads"
        )
