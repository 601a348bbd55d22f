"""The rows of input files in this process, each with its rank."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.inputs.files import BLOCK_BITS, ROW_BITS
from weir.model.schema import Field

# Bytes of files that one process reads, and of what they have when they are not compressed.
MOST_BYTES, MOST_PLAIN = 256 << 20, 1 << 30


@dataclass(frozen=True)
class Rows:
    """The rows of files, in the order of their ranks. `fields`: their columns, of which some may
    have no type yet; `tables`: the rows with their ranks (`_weir_seq`), and marks of those that do
    not fit (`_weir_malformed`)."""

    fields: list[Field]
    tables: Iterable[pa.Table]


def ranks_of(file: int, numbers: np.ndarray) -> np.ndarray:
    """Return the ranks of rows by their numbers in a file."""
    return numbers.astype(np.int64) + (file << (BLOCK_BITS + ROW_BITS))


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
