"""The end of a Parquet file: its footer, and a hash by which the file is known again."""

import pyarrow as pa
import pyarrow.parquet as pq

from weir.model.digest import hash_of
from weir.model.schema import SEQ

END = 1 << 16  # bytes: with most footers, more than follows the pages


def read_footer(source: pa.NativeFile, size: int) -> tuple[pq.FileMetaData, int]:
    """Return the footer of a file of `size` bytes, and the hash of its end (`begin_of_end`). Mostly
    reads once.

    Raises OSError or ArrowInvalid if it has no footer.
    """
    begin = max(0, size - END)
    end = source.read_at(size - begin, begin)
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length <= size:
        end = source.read_at(length, size - length)
    footer = pq.read_metadata(pa.BufferReader(end))
    begin = begin_of_end(footer, size)
    if begin != size - len(end):
        end = source.read_at(size - begin, begin)
    return footer, hash_of(end)


def ranks_of(footer: pq.FileMetaData) -> tuple[int, int] | None:
    """Return the smallest and the largest rank of the rows of a file; None if it does not say."""
    # By their paths, because a nested field may have the same name.
    leaves = (i for i in range(footer.num_columns) if footer.schema.column(i).path == SEQ)
    column = next(leaves, None)
    if column is None:
        return None
    groups = range(footer.num_row_groups)
    ranks = [footer.row_group(i).column(column).statistics for i in groups]
    if not ranks or not all(one is not None and one.has_min_max for one in ranks):
        return None
    return min(one.min for one in ranks), max(one.max for one in ranks)


def begin_of_end(footer: pq.FileMetaData, size: int) -> int:
    """Return where the end of a file of `size` bytes begins, whose hash is recorded: it has all
    that follows the pages (bloom filters, the indexes of pages, the footer), and 64 KiB at least.

    So a file with a footer of usual size is known by one read.
    """
    return min(_end_of_pages(footer), max(0, size - END))


def _end_of_pages(footer: pq.FileMetaData) -> int:
    """Return the byte after the last page of a file; columns lie in the order of the schema."""
    if footer.num_row_groups == 0:
        return 4  # after the letters with which a file begins
    last = footer.row_group(footer.num_row_groups - 1).column(footer.num_columns - 1)
    first = last.dictionary_page_offset if last.has_dictionary_page else last.data_page_offset
    return int((first or last.data_page_offset) + last.total_compressed_size)
