"""Read the ranks of rows, to divide what one task of an append wrote."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.controller.read_plan import FileSlice
from weir.model.schema import SEQ
from weir.warehouse.filesystem import filesystem
from weir.warehouse.row_offsets import rows_between


def rows_in_first_half(warehouse: str, slices: Sequence[FileSlice]) -> list[int]:
    """Return for each slice of files of one append how many of its rows have a rank in the smaller
    half of all ranks: of its offsets, those up to the next row. With two rows or more, neither half
    is empty.
    """
    found = [_ranks(warehouse, one) for one in slices]
    if not found:
        return []
    every = pa.chunked_array([ranks for ranks, _ in found], pa.int64())
    middle = pc.quantile(every, q=0.5, interpolation="lower")[0]
    return [
        _till(part, offsets, pc.sum(pc.less_equal(ranks, middle)).as_py() or 0)
        for part, (ranks, offsets) in zip(slices, found, strict=True)
    ]


def _till(part: FileSlice, offsets: pa.Array, rows: int) -> int:
    """Return how many offsets the first rows of a slice take, with those that have no row."""
    if rows == len(offsets):
        return part.end_row - part.first_row
    return int(offsets[rows].as_py()) - part.start_offset - part.first_row


def _ranks(warehouse: str, part: FileSlice) -> tuple[pa.Array, pa.Array]:
    """Return the ranks of the rows of a slice, and their offsets."""
    system, base = filesystem(warehouse)
    with system.open_input_file(f"{base}/{part.path}") as source:
        file = pq.ParquetFile(source)
        begin, past = part.start_offset + part.first_row, part.start_offset + part.end_row
        offsets, first, end = rows_between(file, part.start_offset, begin, past, sparse=part.sparse)
        column = file.read(columns=[SEQ])[SEQ]
    ranks = column.slice(first, end - first).cast(pa.int64()).combine_chunks()
    return ranks, offsets
