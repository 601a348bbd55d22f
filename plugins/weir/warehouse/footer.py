"""The end of a Parquet file: its footer, and a hash of all that follows its pages."""

import pyarrow as pa
import pyarrow.parquet as pq

from weir.model.digest import hash_of

_AT_ONCE = 1 << 16  # bytes: with most footers, what is before them after the pages


def read_footer(source: pa.NativeFile, size: int) -> tuple[pq.FileMetaData, int]:
    """Return the footer of a file of `size` bytes, and the hash of all that follows its pages:
    bloom filters, the indexes of pages, and the footer itself. Mostly reads once.

    Raises OSError or ArrowInvalid if it has no footer.
    """
    begin = max(0, size - _AT_ONCE)
    end = source.read_at(size - begin, begin)
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length <= size:
        begin = size - length
        end = source.read_at(length, begin)
    footer = pq.read_metadata(pa.BufferReader(end))
    after = end_of_pages(footer)
    if after < begin:
        end, begin = source.read_at(size - after, after), after
    return footer, hash_of(end[after - begin :])


def end_of_pages(footer: pq.FileMetaData) -> int:
    """Return the byte after the last page of a file; columns lie in the order of the schema."""
    if footer.num_row_groups == 0:
        return 4  # after the letters with which a file begins
    last = footer.row_group(footer.num_row_groups - 1).column(footer.num_columns - 1)
    first = last.dictionary_page_offset if last.has_dictionary_page else last.data_page_offset
    return int((first or last.data_page_offset) + last.total_compressed_size)
