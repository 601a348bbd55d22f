"""The end of a Parquet file: its footer, and a hash by which the file is known again."""

import pyarrow as pa
import pyarrow.parquet as pq

from weir.model.digest import hash_of

_END = 1 << 16  # bytes: with most footers, more than follows the pages


def read_end(source: pa.NativeFile, size: int) -> bytes:
    """Return the last 64 KiB of a file of `size` bytes. With one read."""
    begin = max(0, size - _END)
    return bytes(source.read_at(size - begin, begin))


def read_footer(
    source: pa.NativeFile, size: int, end: bytes | None = None
) -> tuple[pq.FileMetaData, int]:
    """Return the footer of a file of `size` bytes, and the hash of its end (`begin_of_end`). `end`:
    its last 64 KiB, if they were read. Mostly reads once.

    Raises OSError or ArrowInvalid if it has no footer.
    """
    end = read_end(source, size) if end is None else end
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length <= size:
        end = source.read_at(length, size - length)
    footer = pq.read_metadata(pa.BufferReader(end))
    begin = begin_of_end(footer, size)
    if begin != size - len(end):
        end = source.read_at(size - begin, begin)
    return footer, hash_of(end)


def begin_of_end(footer: pq.FileMetaData, size: int) -> int:
    """Return where the end of a file of `size` bytes begins, whose hash is recorded: it has all
    that follows the pages (bloom filters, the indexes of pages, the footer), and 64 KiB at least.

    So a file that is small, or has not changed, is known by one read, and nothing is parsed.
    """
    return min(_end_of_pages(footer), max(0, size - _END))


def _end_of_pages(footer: pq.FileMetaData) -> int:
    """Return the byte after the last page of a file; columns lie in the order of the schema."""
    if footer.num_row_groups == 0:
        return 4  # after the letters with which a file begins
    last = footer.row_group(footer.num_row_groups - 1).column(footer.num_columns - 1)
    first = last.dictionary_page_offset if last.has_dictionary_page else last.data_page_offset
    return int((first or last.data_page_offset) + last.total_compressed_size)
