"""Find the rows of a file by their offsets, which have gaps where events were erased."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.model.schema import OFFSET


def rows_between(
    file: pq.ParquetFile, start_offset: int, begin: int, past: int, *, sparse: bool
) -> tuple[pa.Array, int, int]:
    """Return the offsets of the rows of a file from the offset `begin` up to `past`, and the
    numbers of the first of these rows and of the one after the last.

    `start_offset`: that of the file; `sparse`: it has the offset of each of its rows (semantics
    20)."""
    if not sparse:
        return pa.array(range(begin, past), pa.int64()), begin - start_offset, past - start_offset
    offsets = file.read(columns=[OFFSET])[OFFSET].combine_chunks()
    first = pc.sum(pc.less(offsets, begin)).as_py() or 0
    end = pc.sum(pc.less(offsets, past)).as_py() or 0
    return offsets.slice(first, end - first), first, end
