"""Write the rows of several Parquet files into one, with pyarrow.

Every value, and every physical type, stays what it is: a file whose columns pyarrow would write in
another form is left as it is. The memory that this takes does not grow with the files.
"""

import io
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from weir.compaction.description import Description, without_description
from weir.compaction.records import Written
from weir.model.compaction import Small
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, SEQ, field_id
from weir.warehouse.filesystem import make_folder
from weir.warehouse.footer import read_footer
from weir.warehouse.paths import SEGMENT, TASK

ROWS_AT_ONCE = 131_072  # of a row group, the part of a file that a reader can leave out
BYTES_AT_ONCE = 64 << 20  # of a row group, in memory
READ_WHOLE = 4 << 20  # bytes: a file that is no larger is read at once
AHEAD = 16  # files that are read before they are needed
BUFFER = 1 << 20  # bytes: pyarrow writes a file piece by piece
_CLOCKS = pa.field(CLOCK, pa.int64(), nullable=False)
_AGAIN = pa.field(CLOCK_BY_NUMBER, pa.int64(), nullable=False)
_ARROW = b"ARROW:schema"  # pyarrow's own note, which it makes anew


class Unreadable(Exception):
    """A file could not be read."""

    def __init__(self, file: Small, reason: Exception) -> None:
        super().__init__(str(reason))
        self.file, self.reason = file, reason


class _Form(NamedTuple):
    """How a file stores its columns, but for the clock. Files of one form can be put together."""

    arrow: pa.Schema
    leaves: tuple[tuple[Any, ...], ...]
    notes: tuple[tuple[bytes, bytes], ...]
    codec: str


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
                form = _form(source)
                if out is not None and not out.takes(form):
                    written += _ended(out)
                    out = None
                if out is None and _kept(form):
                    out = _File(system, base, folder, next(tasks), form, file.segment_id)
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
            form = _form(source)
            if out is None and _kept(form):
                out = _File(system, base, folder, task, form, file.segment_id)
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
        if rows < file.events or (rows > file.events and not part):
            raise pa.ArrowInvalid(f"it has {rows:,} of {file.events:,} rows")
    except (OSError, pa.ArrowInvalid) as error:
        raise Unreadable(file, error) from error
    return found


def _form(file: pq.ParquetFile) -> _Form:
    schema, metadata = file.schema, file.metadata
    arrow = file.schema_arrow
    for name in {CLOCK, CLOCK_BY_NUMBER} & {*arrow.names}:
        arrow = arrow.remove(arrow.get_field_index(name))
    notes = without_description(metadata.metadata or {})
    notes.pop(_ARROW, None)
    codec = metadata.row_group(0).column(0).compression if metadata.num_row_groups else "SNAPPY"
    return _Form(
        arrow.remove_metadata(), _leaves(schema), tuple(sorted(notes.items())), codec.lower()
    )


def _leaves(schema: pq.ParquetSchema) -> tuple[tuple[Any, ...], ...]:
    columns = [schema.column(i) for i in range(len(schema))]
    return tuple(
        (c.path, c.physical_type, str(c.logical_type), c.length, c.max_definition_level,
         c.max_repetition_level)
        for c in columns if c.path not in (CLOCK, CLOCK_BY_NUMBER)
    )  # fmt: skip


def _options(form: _Form) -> dict[str, Any]:
    """Return how pyarrow is to write a form, so that it stays what it is."""
    kinds = {(leaf[1], leaf[2].partition("(")[0]) for leaf in form.leaves}
    return {
        "compression": "none" if form.codec == "uncompressed" else form.codec,
        "use_deprecated_int96_timestamps": any(kind == "INT96" for kind, _ in kinds),
        "store_decimal_as_integer": bool({("INT32", "Decimal"), ("INT64", "Decimal")} & kinds),
    }


@lru_cache(maxsize=64)
def _kept(form: _Form) -> bool:
    """Return whether pyarrow writes a form as it is."""
    written = io.BytesIO()
    try:
        pq.write_table(form.arrow.empty_table(), written, **_options(form))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    again = pq.ParquetFile(pa.BufferReader(written.getvalue()), coerce_int96_timestamp_unit="us")
    return (_leaves(again.schema), again.schema_arrow.remove_metadata()) == (
        form.leaves, form.arrow,
    )  # fmt: skip


def _of_both(one: _Form, other: _Form) -> _Form | None:
    """Return the form of a file with the columns of two forms; None if they store a column in
    different ways, or if a row without one of the columns would not be the same with a null.

    Files of one schema version have all columns with defaults, so what one lacks is null in it.
    Spark notes the columns of a file in its footer, so its files have to have the same."""
    if one.notes or other.notes or one.codec != other.codec:
        return None
    first, second = _columns(one), _columns(other)
    whole = {**first, **{name: c for name, c in second.items() if name not in first}}
    if any("." in name for name in whole):  # the leaves of which column is not clear
        return None
    if any(first[name] != second[name] for name in first.keys() & second.keys()):
        return None
    for name in first.keys() ^ second.keys():
        if name.startswith("_weir") or not whole[name][0].nullable:
            return None
    leaves = tuple(leaf for _, some in whole.values() for leaf in some)
    return one._replace(arrow=pa.schema([field for field, _ in whole.values()]), leaves=leaves)


def _columns(form: _Form) -> dict[str, tuple[pa.Field, list[tuple[Any, ...]]]]:
    leaves: dict[str, list[tuple[Any, ...]]] = {}
    for leaf in form.leaves:
        leaves.setdefault(leaf[0].partition(".")[0], []).append(leaf)
    return {field.name: (field, leaves.get(field.name, [])) for field in form.arrow}


def _numbered(schema: pa.Schema) -> pa.Schema:
    """Return a schema with field ids. DuckLake finds the clocks by one, and readers of Iceberg look
    for all columns by theirs if one has any (decision 88)."""
    return pa.schema([_with_id(field, ()) for field in schema], schema.metadata)


def _with_id(field: pa.Field, above: tuple[str, ...], name: str = "") -> pa.Field:
    path = (*above, name or field.name)
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_id(one, path) for one in kind])
    elif pa.types.is_map(kind):
        key, value = (kind.key_field, "key"), (kind.item_field, "value")
        kind = pa.map_(*[_with_id(one, path, called) for one, called in (key, value)])
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_id(kind.value_field, path, "element"))
    return field.with_type(kind).with_metadata({"PARQUET:field_id": str(field_id(path))})


class _File:
    """A new file while it is written."""

    def __init__(
        self, system: fs.FileSystem, base: str, folder: str, task: int, form: _Form, segment: int
    ) -> None:
        self._system, self._old = system, list[Small]()
        self._path = f"{folder}{SEGMENT}={segment}/{TASK}={task}/part-{uuid.uuid4().hex}.parquet"
        self._whole = f"{base}/{self._path}"
        self._become(form)
        self._rows: list[pa.Table] = []
        self._count = self._size = 0
        self._first, self._last = 1 << 62, 0
        make_folder(system, self._whole.rpartition("/")[0])
        self._sink = system.open_output_stream(self._whole, buffer_size=BUFFER)
        self._writer: pq.ParquetWriter | None = None

    def _become(self, form: _Form) -> None:
        self.form = form
        self._schema = form.arrow.append(_CLOCKS).with_metadata(dict(form.notes))

    def takes(self, form: _Form) -> bool:
        """Return whether it can have the rows of a file of this form; before it has written any, it
        gets the columns that it lacks."""
        if form == self.form:
            return True
        both = _of_both(self.form, form)
        if both is None or both == self.form:
            return both is not None
        if self._writer is not None or not _kept(both):
            return False
        self._become(both)
        return True

    def add(self, file: Small, source: pq.ParquetFile) -> None:
        """Add the rows of a file, a row group at a time, and of the first ones as many as it is to
        have."""
        left = file.events
        for i in range(source.num_row_groups):
            if left <= 0:
                break
            try:
                rows = source.read_row_group(i, use_threads=False).slice(0, left)
            except (OSError, pa.ArrowInvalid) as error:
                raise Unreadable(file, error) from error
            left -= rows.num_rows
            rows = rows.select([name for name in rows.column_names if name != CLOCK_BY_NUMBER])
            if file.clock is not None:
                if CLOCK in rows.column_names:
                    rows = rows.drop_columns([CLOCK])
                clocks = pa.repeat(pa.scalar(file.clock, pa.int64()), rows.num_rows)
                rows = rows.append_column(self._schema.field(CLOCK), clocks)
            self._rows.append(rows)
            self._count += rows.num_rows
            self._size += rows.nbytes
            if self._count >= ROWS_AT_ONCE or self._size >= BYTES_AT_ONCE:
                self._flush()
        self._old.append(file)

    def _flush(self) -> None:
        if not self._rows:
            return
        rows = pa.concat_tables([self._completed(rows) for rows in self._rows])
        rows = rows.cast(self._schema)
        rows = rows.append_column(_AGAIN, rows[CLOCK])
        ranks = pc.min_max(rows[SEQ])
        self._first = min(self._first, ranks["min"].as_py())
        self._last = max(self._last, ranks["max"].as_py())
        if self._writer is None:
            deltas = dict.fromkeys((SEQ, CLOCK_BY_NUMBER), "DELTA_BINARY_PACKED")
            self._writer = pq.ParquetWriter(
                self._sink, _numbered(rows.schema), column_encoding=deltas,
                use_dictionary=[name for name in rows.column_names if name not in deltas],
                # Else the values of 131,072 longs just fit into a dictionary, which only costs.
                write_page_checksum=True, dictionary_pagesize_limit=1 << 16,
                **_options(self.form),
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
        self._flush()
        assert self._writer is not None
        first, rows = self._old[0], sum(file.events for file in self._old)
        described = Description(first.segment_id, first.start_offset, rows, first.schema_version)
        self._writer.add_key_value_metadata(described.notes)
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        with self._system.open_input_file(self._whole) as source:
            footer, end_hash = read_footer(source, size)
        if footer.num_rows != rows:
            raise OSError(f"{self._whole} has {footer.num_rows:,} of the {rows:,} rows written")
        return Written(self._path, size, end_hash, self._first, self._last, self._old)

    def drop(self) -> None:
        """Delete the file."""
        if self._writer is not None:
            self._writer.close()
        self._sink.close()
        self._system.delete_file(self._whole)
