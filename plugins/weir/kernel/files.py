"""The files of an attempt, written while their rows come.

Rows of a segment are kept until they make a row group, or until all kept rows take too much memory:
then the segment with most of them writes. So what a writer needs has a bound, whatever the numbers
of segments and of rows and the size of these.
"""

import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from weir.kernel.attempt import StagedFile
from weir.kernel.bounds import bounded
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import range_of, times_of
from weir.kernel.row_hash import U64
from weir.kernel.stage import Layout
from weir.model.digest import hash_of, signed
from weir.model.key_space import SEED
from weir.model.schema import SEQ
from weir.warehouse.filesystem import filesystem, make_folder
from weir.warehouse.footer import END, begin_of_end
from weir.warehouse.paths import SEGMENT, TASK

BUFFERED = 128 << 20  # bytes of rows that wait, of all segments
OPEN = 64  # files that a writer has open; a further one is closed with its first row group
# Bytes, a sixteenth of the default: looking up each value in a large dictionary costs most of a
# write.
DICTIONARY = 1 << 16
THREADS = 16  # that end files at the same time
_AT_ONCE = 1 << 20  # bytes that storage gets in one call


class _Bytes:
    """What a Parquet writer writes to. The bytes go on to storage, and are hashed as they were
    made, not as they were read again."""

    closed = False

    def __init__(self, root: str, folder: str, name: str) -> None:
        self._system, base = filesystem(root)
        self._folder, self._name = f"{base}/{folder}", name
        self._out: pa.NativeFile | None = None
        self._waiting: list[bytes] = []
        self._last: deque[bytes] = deque()  # the end of what was written
        self._hash = xxhash.xxh64(seed=SEED)
        self.size = self._held = self._kept = 0
        self.ending = False  # what comes now is the end of the file

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self._waiting.append(data)
        self._last.append(data)
        self.size, self._held = self.size + len(data), self._held + len(data)
        self._kept += len(data)
        while not self.ending and self._kept - len(self._last[0]) >= END:
            self._kept -= len(self._last.popleft())
        if self._held >= _AT_ONCE:
            self._send()
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: who ends the file sends the rest."""

    def close(self) -> None:
        """Send the rest, and end the file."""
        self._send()
        assert self._out is not None
        self._out.close()
        self.closed = True

    def _send(self) -> None:
        if self._out is None:
            make_folder(self._system, self._folder)
            self._out = self._system.open_output_stream(f"{self._folder}/{self._name}")
        self._out.write(b"".join(self._waiting))
        self._waiting, self._held = [], 0

    def hashes(self, footer: pq.FileMetaData) -> tuple[int, int]:
        """Return the hash of the end of the file (`begin_of_end`), and that of all its bytes."""
        whole, begin = signed(self._hash.intdigest()), begin_of_end(footer, self.size)
        end = b"".join(self._last)
        assert begin == 0 or len(end) >= self.size - begin, (begin, len(end), self.size)
        return (hash_of(end[begin - self.size :]) if begin else whole), whole


class ParquetFile:
    """A file of a segment. `dictionary`: the columns that may have one. `bounds`: those that have
    bounds in the footer (`weir.kernel.bounds`)."""

    def __init__(
        self, root: str, folder: str, segment_id: int, task: int, chunk: int,
        schema: pa.Schema, dictionary: list[str], bounds: bool | list[str] = True,
    ) -> None:  # fmt: skip
        where = f"{folder}{SEGMENT}={segment_id}/{TASK}={task}"
        name = f"part-{uuid.uuid4().hex}.c{chunk:03}.parquet"
        self.path = f"{where}/{name}"
        self._bytes = _Bytes(root, where, name)
        self._footers: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._bytes, schema, compression="snappy", use_dictionary=dictionary,
            dictionary_pagesize_limit=DICTIONARY, column_encoding={SEQ: "DELTA_BINARY_PACKED"},
            write_page_checksum=True, write_statistics=bounds, metadata_collector=self._footers,
        )  # fmt: skip

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group."""
        self._writer.write_table(rows, max(1, rows.num_rows))

    def end(self) -> tuple[int, int, int]:
        """End the file. Return its size in bytes, and its hashes as `StagedFile` has them: of its
        end, and of all its bytes."""
        self._bytes.ending = True
        self._writer.close()
        self._bytes.close()
        return self._bytes.size, *self._bytes.hashes(self._footers[0])


@dataclass
class _Current:
    """The file that a segment is writing, and what is known of its rows."""

    file: ParquetFile
    bounds: bool | list[str]
    events: int = 0
    first: int = 0
    last: int = 0
    hashes: int = 0
    low: int | None = None
    high: int | None = None
    untimed: int = 0


@dataclass
class _Segment:
    segment_id: int
    task: int
    rows: list[pa.RecordBatch] = field(default_factory=list)
    hashes: list[U64] = field(default_factory=list)
    waiting: int = 0  # rows
    size: int = 0  # bytes of them
    current: _Current | None = None
    done: list[StagedFile] = field(default_factory=list)


class SegmentFiles:
    """Writes the rows that a task has of the segments of an attempt."""

    def __init__(self, layout: Layout, task: int) -> None:
        """`task`: no other writer of the attempt has its number."""
        self._layout = layout
        segments, _ = layout.segments()
        self._segments = [_Segment(one, task * len(segments) + i) for i, one in enumerate(segments)]
        self._size = self._open = 0

    def add(self, ordinal: int, rows: pa.RecordBatch, hashes: U64) -> None:
        """Add rows of a segment, which follow those before. `hashes`: of each row."""
        one, size = self._segments[ordinal], rows.nbytes
        one.rows.append(rows)
        one.hashes.append(hashes)
        one.waiting, one.size, self._size = (
            one.waiting + rows.num_rows, one.size + size, self._size + size,
        )  # fmt: skip
        if one.waiting >= self._layout.group_rows:
            self._write(one)
        while self._size > BUFFERED:
            self._write(max(self._segments, key=lambda segment: segment.size))

    def end_before(self, ordinal: int) -> None:
        """End the files of the segments before this one, of which no rows come any more."""
        for one in self._segments[:ordinal]:
            self._end(one)

    def end(self) -> tuple[StagedFile, ...]:
        """Write what waits, and return all files."""
        left = [one for one in self._segments if one.waiting or one.current]
        if len(left) < 2:
            for one in left:
                self._end(one)
        else:  # an object store takes long for one file, and no longer for many
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(self._end, left))
        return tuple(file for one in self._segments for file in one.done)

    def _end(self, one: _Segment) -> None:
        if one.waiting:
            self._write(one)
        self._close(one)

    def _write(self, one: _Segment) -> None:
        table, hashes = pa.Table.from_batches(one.rows), np.concatenate(one.hashes)
        self._size -= one.size
        one.rows, one.hashes, one.waiting, one.size = [], [], 0, 0
        begin = 0
        while begin < table.num_rows:
            written = one.current.events if one.current else 0
            rows = table.slice(
                begin, min(self._layout.group_rows, self._layout.file_rows - written)
            )
            bounds = bounded(rows)
            if one.current and not _covers(bounds, one.current.bounds):
                self._close(one)  # the footer of that file has bounds where these rows have a NaN
            current = one.current or self._opened(one, table.schema, bounds)
            self._into(current, rows, hashes[begin : begin + rows.num_rows])
            begin += rows.num_rows
            if current.events >= self._layout.file_rows or self._open > OPEN:
                self._close(one)

    def _opened(self, one: _Segment, schema: pa.Schema, bounds: bool | list[str]) -> _Current:
        dictionary = [name for name in schema.names if name not in (SEQ, TIME)]
        place = self._layout
        file = ParquetFile(
            place.warehouse, place.attempt.folder, one.segment_id, one.task, len(one.done), schema,
            dictionary, bounds,
        )  # fmt: skip
        one.current = _Current(file, bounds)
        self._open += 1
        return one.current

    def _into(self, current: _Current, rows: pa.Table, hashes: U64) -> None:
        current.file.write(rows)
        ranks = rows[SEQ]
        if not current.events:
            current.first = ranks[0].as_py()
        current.last = ranks[-1].as_py()
        current.events += rows.num_rows
        current.hashes = signed(current.hashes + int(hashes.sum()))
        if self._layout.time is not None:
            found = range_of(times_of(rows[self._layout.time.name]))
            ends = [one for one in (current.low, current.high, found.low, found.high)
                    if one is not None]  # fmt: skip
            current.low, current.high = min(ends, default=None), max(ends, default=None)
            current.untimed += found.untimed

    def _close(self, one: _Segment) -> None:
        if (current := one.current) is None:
            return
        size, end_hash, file_hash = current.file.end()
        one.done.append(
            StagedFile(
                one.segment_id, current.file.path, current.events, size, current.first,
                current.last, current.low, current.high, current.untimed, current.hashes,
                end_hash, file_hash,
            )
        )  # fmt: skip
        one.current = None
        self._open -= 1


def _covers(may: bool | list[str], have: bool | list[str]) -> bool:
    """Return whether all columns that have bounds may have them."""
    return may is True or (not isinstance(have, bool) and set(have) <= set(may or []))
