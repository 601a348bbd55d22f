"""Parquet files that are written while their rows come.

Rows of a group (a segment, a folder) are kept until they make a row group, or until all kept rows
take too much memory: then the group with most of them writes. So what a writer needs has a bound,
whatever the numbers of groups and of rows and the size of these.
"""

import uuid
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from weir.kernel.bounds import bounded
from weir.model.digest import hash_of, signed
from weir.model.key_space import SEED
from weir.model.schema import SEQ
from weir.warehouse.filesystem import filesystem, make_folder
from weir.warehouse.footer import END, begin_of_end

BUFFERED = 128 << 20  # bytes of rows that wait, of all groups
OPEN = 64  # files that a writer has open; a further one is closed with its first row group
# Bytes, a sixteenth of the default: looking up each value in a large dictionary costs most of a
# write.
DICTIONARY = 1 << 16
THREADS = 16  # that end files at the same time
_AT_ONCE = 1 << 20  # bytes that storage gets in one call

Bounds = bool | list[str]  # the columns that have bounds in a footer (`weir.kernel.bounds`)
Group = TypeVar("Group", int, str)
Done = TypeVar("Done")
DoneOf = TypeVar("DoneOf", covariant=True)


class _Bytes:
    """What a Parquet writer writes to. The bytes go on to storage, and are hashed as they were
    made, not as they were read again."""

    closed = False

    def __init__(self, root: str, path: str) -> None:
        self._system, base = filesystem(root)
        self._path = f"{base}/{path}"
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
            make_folder(self._system, self._path.rpartition("/")[0])
            self._out = self._system.open_output_stream(self._path)
        self._out.write(b"".join(self._waiting))
        self._waiting, self._held = [], 0

    def hashes(self, footer: pq.FileMetaData) -> tuple[int, int]:
        """Return the hash of the end of the file (`begin_of_end`), and that of all its bytes."""
        whole, begin = signed(self._hash.intdigest()), begin_of_end(footer, self.size)
        end = b"".join(self._last)
        assert begin == 0 or len(end) >= self.size - begin, (begin, len(end), self.size)
        return (hash_of(end[begin - self.size :]) if begin else whole), whole


class ParquetFile:
    """A file below a folder, which ends in a slash. `chunk`: how many files its writer has written
    there before. `plain`: the columns that have no dictionary."""

    def __init__(
        self, root: str, folder: str, chunk: int, schema: pa.Schema, plain: Collection[str] = (),
        bounds: Bounds = True, compression: str = "snappy", *, small_decimals: bool = False,
    ) -> None:  # fmt: skip
        self.path = f"{folder}part-{uuid.uuid4().hex}.c{chunk:03}.parquet"
        self._bytes = _Bytes(root, self.path)
        self._footers: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._bytes, schema, compression=compression,
            use_dictionary=[name for name in schema.names if name not in {SEQ, *plain}],
            dictionary_pagesize_limit=DICTIONARY, write_page_checksum=True,
            column_encoding={SEQ: "DELTA_BINARY_PACKED"} if SEQ in schema.names else None,
            write_statistics=bounds, metadata_collector=self._footers,
            store_decimal_as_integer=small_decimals,
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


class OpenFile(Protocol[DoneOf]):
    """A file that a group is writing, and what is known of its rows."""

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group."""

    def end(self) -> DoneOf:
        """End the file, and return what to say of it."""


# Opens a file of a group: how many it has already, the columns, and which of them have bounds.
Opens = Callable[[Group, int, pa.Schema, Bounds], OpenFile[Done]]


@dataclass
class _Waiting(Generic[Done]):
    """The rows of a group that wait, and its open file with the number of rows in it."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    count: int = 0
    size: int = 0  # bytes
    file: OpenFile[Done] | None = None
    bounds: Bounds = True
    written: int = 0
    done: list[Done] = field(default_factory=list)


class GroupedFiles(Generic[Group, Done]):
    """Writes rows into files of their groups. `file_rows`: of a file; None for one file of each
    group, so that only columns have bounds of which no row can have a NaN."""

    def __init__(self, opens: Opens[Group, Done], group_rows: int, file_rows: int | None) -> None:
        self._opens: Opens[Group, Done] = opens
        self._group_rows, self._file_rows = group_rows, file_rows
        self._groups: dict[Group, _Waiting[Done]] = {}
        self._size = self._open = 0

    def add(self, group: Group, rows: pa.RecordBatch) -> None:
        """Add rows of a group, which follow those before."""
        if (one := self._groups.get(group)) is None:
            one = self._groups[group] = _Waiting()
        size = rows.nbytes
        one.rows.append(rows)
        one.count, one.size, self._size = (
            one.count + rows.num_rows, one.size + size, self._size + size,
        )  # fmt: skip
        if one.count >= self._group_rows:
            self._write(group, one)
        while self._size > BUFFERED:
            self._write(*max(self._groups.items(), key=lambda item: item[1].size))

    def end_before(self, group: Group) -> None:
        """End the files of the groups before this one, of which no rows come any more."""
        for name, one in self._groups.items():
            if name < group:
                self._end(name, one)

    def end(self) -> tuple[Done, ...]:
        """Write what waits, and return all files, in the order of their groups."""
        left = [item for item in self._groups.items() if item[1].count or item[1].file]
        if len(left) < 2:
            for item in left:
                self._end(*item)
        else:  # an object store takes long for one file, and no longer for many
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda item: self._end(*item), left))
        return tuple(file for _, one in sorted(self._groups.items(), key=_name)
                     for file in one.done)  # fmt: skip

    def _end(self, group: Group, one: _Waiting[Done]) -> None:
        if one.count:
            self._write(group, one)
        self._close(one)

    def _write(self, group: Group, one: _Waiting[Done]) -> None:
        table = pa.Table.from_batches(one.rows)
        self._size -= one.size
        one.rows, one.count, one.size = [], 0, 0
        most, begin = self._file_rows, 0
        while begin < table.num_rows:
            room = self._group_rows if most is None else min(self._group_rows, most - one.written)
            rows = table.slice(begin, room)
            bounds = bounded(rows, all_of_file=most is not None)
            if one.file and not _covers(bounds, one.bounds):
                self._close(one)  # the footer of that file has bounds where these rows have a NaN
            if one.file is None:
                one.file = self._opens(group, len(one.done), table.schema, bounds)
                one.bounds = bounds
                self._open += 1
            one.file.write(rows)
            one.written, begin = one.written + rows.num_rows, begin + rows.num_rows
            if most is not None and (one.written >= most or self._open > OPEN):
                self._close(one)

    def _close(self, one: _Waiting[Done]) -> None:
        if one.file is not None:
            one.done.append(one.file.end())
            one.file, one.written = None, 0
            self._open -= 1


def _name(item: tuple[Group, object]) -> Group:
    return item[0]


def _covers(may: Bounds, have: Bounds) -> bool:
    """Return whether all columns that have bounds may have them."""
    return may is True or (not isinstance(have, bool) and set(have) <= set(may or []))
