"""Read the ranks of rows, to divide what one task of an append wrote."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.controller.read_plan import FileSlice
from weir.model.schema import SEQ
from weir.warehouse.filesystem import filesystem


def rows_in_first_half(warehouse: str, slices: Sequence[FileSlice]) -> list[int]:
    """Return for each slice of files of one append how many of its rows have a rank in the smaller
    half of all ranks. With two rows or more, neither half is empty.
    """
    found = [_ranks(warehouse, one) for one in slices]
    if not found:
        return []
    middle = pc.quantile(pa.chunked_array(found, pa.int64()), q=0.5, interpolation="lower")[0]
    return [pc.sum(pc.less_equal(ranks, middle)).as_py() or 0 for ranks in found]


def _ranks(warehouse: str, part: FileSlice) -> pa.Array:
    system, base = filesystem(warehouse)
    with system.open_input_file(f"{base}/{part.path}") as source:
        column = pq.ParquetFile(source).read(columns=[SEQ])[SEQ]
    rows = column.slice(part.first_row, part.end_row - part.first_row)
    return rows.cast(pa.int64()).combine_chunks()
