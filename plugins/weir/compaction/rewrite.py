"""Write the rows of several Parquet files into one, with pyarrow.

Every value, and every physical type, stays what it is: a file whose columns pyarrow would write in
another form is left as it is. The memory that this takes does not grow with the files.
"""

import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from weir.compaction.description import Description
from weir.compaction.forms import Form, form_of, is_kept, numbered, of_both, options
from weir.compaction.records import Written
from weir.kernel.bounds import bounded
from weir.model.compaction import Small
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER, SEQ
from weir.warehouse.filesystem import make_folder
from weir.warehouse.footer import read_footer
from weir.warehouse.paths import SEGMENT, TASK

ROWS_AT_ONCE = 131_072  # of a row group, the part of a file that a reader can leave out
BYTES_AT_ONCE = 64 << 20  # of a row group, in memory
READ_WHOLE = 4 << 20  # bytes: a file that is no larger is read at once
AHEAD = 16  # files that are read before they are needed
BUFFER = 1 << 20  # bytes: pyarrow writes a file piece by piece
_CLOCKS = pa.field(CLOCK, pa.int64(), nullable=False)
_OFFSETS = pa.field(OFFSET, pa.int64(), nullable=False)
_PLACES = pa.field(PLACE_BY_NUMBER, pa.int64(), nullable=False)
_AGAIN = pa.field(CLOCK_BY_NUMBER, pa.int64(), nullable=False)


class Unreadable(Exception):
    """A file could not be read."""

    def __init__(self, file: Small, reason: Exception) -> None:
        super().__init__(str(reason))
        self.file, self.reason = file, reason


class Drop(NamedTuple):
    """The rows that a new file is not to have: their `offsets`; `seen` is called with them."""

    offsets: npt.NDArray[np.int64]
    seen: Callable[[pa.Table], None]


def rewrite(
    system: fs.FileSystem, base: str, folder: str, tasks: Iterator[int], group: Sequence[Small]
) -> list[Written]:
    """Write the rows of neighbouring files into as few files as their forms allow, mostly one.

    `base`: the path of the warehouse; `folder`: below it, that of the compaction; `tasks`: numbers
    for the folders of the new files. Leaves nothing behind of what it does not return. Raises
    Unreadable for an old file, OSError if a new one can't be written.
    """
    written: list[Written] = []
    out: _File | None = None
    try:
        with ThreadPoolExecutor(AHEAD) as pool:
            for file, data in _ahead(pool, system, base, group):
                source = _opened(system, base, file, data)
                form = form_of(source)
                if out is not None and not out.takes(form):
                    written += _ended(out)
                    out = None
                if out is None and is_kept(form):
                    out = _File(system, base, folder, next(tasks), form, group)
                if out is not None:
                    out.add(file, source)
        return written + (_ended(out) if out is not None else [])
    except BaseException:
        if out is not None:
            out.drop()
        for one in written:
            system.delete_file(f"{base}/{one.path}")
        raise


def _ended(out: "_File") -> list[Written]:
    """End a file, and return it; if it has the rows of one old file only, drop it."""
    if out.one:
        out.drop()
        return []
    return [out.end()]


def put_in_one(
    system: fs.FileSystem, base: str, folder: str, task: int, files: Sequence[Small],
    old: Sequence[Small],
) -> Written | None:  # fmt: skip
    """Write the rows of files that follow one another into one, of each the first `events`.

    `old`: recorded files with the same events, whose place it is to take. Returns None, and leaves
    nothing behind, if the files have different forms. Raises Unreadable and OSError as `rewrite`.
    """
    out: _File | None = None
    try:
        for file in files:
            source = _opened(system, base, file, None, part=True)
            form = form_of(source)
            if out is None and is_kept(form):
                out = _File(system, base, folder, task, form, files)
            if out is None or not out.takes(form):
                break
            out.add(file, source)
        else:
            return None if out is None else out.end()._replace(old=old)
    except BaseException:
        if out is not None:
            out.drop()
        raise
    if out is not None:
        out.drop()
    return None


def without(
    system: fs.FileSystem, base: str, folder: str, task: int, file: Small, drop: Drop
) -> Written:
    """Write a file without some of its rows, with the offset of each that is left.

    Raises Unreadable and OSError as `rewrite`."""
    source = _opened(system, base, file, None)
    out = _File(system, base, folder, task, form_of(source), [file], drop)
    try:
        out.add(file, source)
        return out.end()
    except BaseException:
        out.drop()
        raise


def _ahead(
    pool: ThreadPoolExecutor, system: fs.FileSystem, base: str, group: Sequence[Small]
) -> Iterator[tuple[Small, bytes | None]]:
    """Yield the files in their order, each with its bytes if it is small."""

    def read(file: Small) -> bytes | None:
        if file.bytes > READ_WHOLE:
            return None
        with system.open_input_stream(f"{base}/{file.path}", buffer_size=0) as source:
            return source.read()  # type: ignore[no-any-return]

    waiting: deque[tuple[Small, Future[bytes | None]]] = deque()
    rest = iter(group)
    for file in rest:
        waiting.append((file, pool.submit(read, file)))
        if len(waiting) >= AHEAD:
            break
    while waiting:
        file, future = waiting.popleft()
        try:
            data = future.result()
        except OSError as error:
            for _, other in waiting:
                other.cancel()
            raise Unreadable(file, error) from error
        if (following := next(rest, None)) is not None:
            waiting.append((following, pool.submit(read, following)))
        yield file, data


def _opened(
    system: fs.FileSystem, base: str, file: Small, data: bytes | None, *, part: bool = False
) -> pq.ParquetFile:
    """Open a file of which all rows are wanted, or a `part`."""
    try:
        source = (
            pa.BufferReader(data) if data is not None
            else system.open_input_file(f"{base}/{file.path}")
        )  # fmt: skip
        # What Spark wrote when it still wrote INT96: nanoseconds would overflow.
        found = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        rows = found.metadata.num_rows
        if rows < file.rows or (rows > file.rows and not part):
            raise pa.ArrowInvalid(f"it has {rows:,} of {file.rows:,} rows")
    except (OSError, pa.ArrowInvalid) as error:
        raise Unreadable(file, error) from error
    return found


class _File:
    """A new file while it is written."""

    def __init__(
        self, system: fs.FileSystem, base: str, folder: str, task: int, form: Form,
        files: Sequence[Small], drop: Drop | None = None,
    ) -> None:  # fmt: skip
        """`files`: what it may be made of, in one segment."""
        self._system, self._old = system, list[Small]()
        self._drop = drop
        self._sparse = drop is not None or any(file.erased for file in files)
        segment = files[0].segment_id
        self._places = (segment & 4194303) << 41  # as in the view ducklake_data_file
        self._path = f"{folder}{SEGMENT}={segment}/{TASK}={task}/part-{uuid.uuid4().hex}.parquet"
        self._whole = f"{base}/{self._path}"
        self._become(form)
        self._rows: list[pa.Table] = []
        self._count = self._size = 0
        self._first, self._last = 1 << 62, 0
        make_folder(system, self._whole.rpartition("/")[0])
        self._sink = system.open_output_stream(self._whole, buffer_size=BUFFER)
        self._writer: pq.ParquetWriter | None = None

    def _become(self, form: Form) -> None:
        self.form = form
        schema = form.arrow.append(_CLOCKS)
        schema = schema.append(_OFFSETS) if self._sparse else schema
        self._schema = schema.with_metadata(dict(form.notes))

    def takes(self, form: Form) -> bool:
        """Return whether it can have the rows of a file of this form; before it has written any, it
        gets the columns that it lacks."""
        if form == self.form:
            return True
        both = of_both(self.form, form)
        if both is None or both == self.form:
            return both is not None
        if self._writer is not None or not is_kept(both):
            return False
        self._become(both)
        return True

    def add(self, file: Small, source: pq.ParquetFile) -> None:
        """Add the rows of a file, a row group at a time, and of the first ones as many as it is to
        have."""
        left, offset = file.rows, file.start_offset
        for i in range(source.num_row_groups):
            if left <= 0:
                break
            try:
                rows = source.read_row_group(i, use_threads=False).slice(0, left)
            except (OSError, pa.ArrowInvalid) as error:
                raise Unreadable(file, error) from error
            left -= rows.num_rows
            if self._sparse and OFFSET not in rows.column_names:
                offsets = pa.array(range(offset, offset + rows.num_rows), pa.int64())
                rows = rows.append_column(_OFFSETS, offsets)
            offset += rows.num_rows
            again = (CLOCK_BY_NUMBER, PLACE_BY_NUMBER)
            rows = rows.select([name for name in rows.column_names if name not in again])
            if file.clock is not None:
                if CLOCK in rows.column_names:
                    rows = rows.drop_columns([CLOCK])
                clocks = pa.repeat(pa.scalar(file.clock, pa.int64()), rows.num_rows)
                rows = rows.append_column(self._schema.field(CLOCK), clocks)
            rows = self._left(rows)
            self._rows.append(rows)
            self._count += rows.num_rows
            self._size += rows.nbytes
            if self._count >= ROWS_AT_ONCE or self._size >= BYTES_AT_ONCE:
                self._flush()
        self._old.append(file)

    def _left(self, rows: pa.Table) -> pa.Table:
        """Return the rows that it is to have."""
        if self._drop is None:
            return rows
        gone = np.isin(rows[OFFSET].to_numpy(), self._drop.offsets)
        if gone.any():
            self._drop.seen(rows.filter(pa.array(gone)))
        return rows.filter(pa.array(~gone))

    def _flush(self, *, last: bool = False) -> None:
        if not self._rows:
            return
        rows = pa.concat_tables([self._completed(rows) for rows in self._rows])
        rows = rows.cast(self._schema)
        rows = rows.append_column(_AGAIN, rows[CLOCK])
        if self._sparse:
            rows = rows.append_column(_PLACES, pc.add(rows[OFFSET], self._places))
        if rows.num_rows:
            ranks = pc.min_max(rows[SEQ])
            self._first = min(self._first, ranks["min"].as_py())
            self._last = max(self._last, ranks["max"].as_py())
        if self._writer is None:
            deltas = dict.fromkeys(
                (SEQ, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER), "DELTA_BINARY_PACKED"
            )
            self._writer = pq.ParquetWriter(
                self._sink, numbered(rows.schema), column_encoding=deltas,
                use_dictionary=[name for name in rows.column_names if name not in deltas],
                # Else the values of 131,072 longs just fit into a dictionary, which only costs.
                write_page_checksum=True, dictionary_pagesize_limit=1 << 16,
                write_statistics=bounded(rows, all_of_file=last),
                **options(self.form),
            )  # fmt: skip
        self._writer.write_table(rows, row_group_size=ROWS_AT_ONCE)
        self._rows, self._count, self._size = [], 0, 0

    def _completed(self, rows: pa.Table) -> pa.Table:
        """Return rows with all columns of the file, null where they lack one."""
        there = set(rows.column_names)
        if len(there) == len(self._schema):
            return rows.select(self._schema.names).replace_schema_metadata(None)
        values = [
            rows[field.name] if field.name in there else pa.nulls(rows.num_rows, field.type)
            for field in self._schema
        ]
        return pa.table(values, schema=self._schema.remove_metadata())

    @property
    def one(self) -> bool:
        """Whether it has the rows of one old file only, and so nobody needs it."""
        return len(self._old) < 2

    def end(self) -> Written:
        """End the file, and return it."""
        if self._writer is None and not self._rows:  # all its events are erased
            self._rows = [self._schema.empty_table()]
        self._flush(last=True)
        assert self._writer is not None
        first, events = self._old[0], sum(file.events for file in self._old)
        described = Description(first.segment_id, first.start_offset, events, first.schema_version)
        dropped = 0 if self._drop is None else len(self._drop.offsets)
        rows = sum(file.rows for file in self._old) - dropped
        self._writer.add_key_value_metadata(described.notes)
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        with self._system.open_input_file(self._whole) as source:
            footer, end_hash = read_footer(source, size)
        if footer.num_rows != rows:
            raise OSError(f"{self._whole} has {footer.num_rows:,} of the {rows:,} rows written")
        first_seq = min(self._first, self._last)
        return Written(self._path, size, end_hash, first_seq, self._last, self._old, dropped)

    def drop(self) -> None:
        """Delete the file."""
        if self._writer is not None:
            self._writer.close()
        self._sink.close()
        self._system.delete_file(self._whole)
