"""Append small amounts of data without a JVM, as pyarrow tables.

The transactions, the files and the order are the same as with Spark: either can write a stream and
the other can read it.
"""

import struct
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from weir.arrow.event_time import COLUMN as TIME
from weir.arrow.event_time import (
    TimeColumn,
    check_type,
    count_late,
    missing_column,
    range_of,
    times_of,
)
from weir.arrow.row_hash import sum_of_hashes
from weir.arrow.schema import absent, cast_column, from_arrow, to_arrow, to_read
from weir.controller.attempts import writing
from weir.controller.commit import commit_begun
from weir.controller.staged import Staged, StagedFile, check_written
from weir.controller.transactions import Attempt, Committed, begin
from weir.errors import BadRows, InvalidInput
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.model.digest import hash_of
from weir.model.event_time import UNITS, EventTimes
from weir.model.key_space import STEPS, routing_steps
from weir.model.names import stream_name
from weir.model.new_columns import fitting, lacking_defaults
from weir.model.plain_column import plain_column
from weir.model.schema import SEQ, Field, show, stored_name
from weir.model.segment import Segment
from weir.warehouse.filesystem import filesystem, make_folder, not_writable
from weir.warehouse.footer import begin_of_end
from weir.warehouse.marker import check_unused
from weir.warehouse.paths import SEGMENT, TASK

ROWS_PER_FILE = 1_000_000  # of a segment; more rows get more files
THREADS = 16  # that write files at the same time


def append_table(
    app: Installation,
    stream: str,
    table: pa.Table,
    *,
    writer_id: str,
    batch_id: str,
    complete_until: datetime | str | None = None,
) -> Committed:
    """Append the rows of a pyarrow table to a stream, in the order of the table, in one
    transaction. Return what was committed, now or by an earlier try (`repeated`).

    `writer_id` and `batch_id` identify the append. They alone decide: if a table was committed
    under them, nothing is appended, even if this one has other rows, because Weir does not compare
    them (semantics 12). `complete_until`: the event time before which this writer has appended
    everything with this append (a datetime, a text, or `done`).

    The routing key must be a column of strings, whole numbers, booleans or dates. Use Spark if it
    is an expression, or to quarantine rows. So must the event time be a column, of times, dates,
    numbers or strings (docs/event-time.md).

    Raises BadRows for rows without a routing key and values that would change; InvalidInput for
    columns that do not fit the stream, for what needs Spark, and for a wrong `complete_until`;
    NotFound for a stream that does not exist; Conflict if the stream is sealed, or if the identity
    was used for files or a DataFrame; Fenced if another try took over, or if what was written is
    gone; Unavailable if the warehouse takes no files; InvariantViolation if the
    warehouse is not this database's.
    """
    database, settings = app.database, app.settings
    begun = begin(
        database, stream_name(stream), writer_id=writer_id, batch_id=batch_id,
        fingerprint="table", lease=settings.transaction_lease, source=app.source,
        complete_until=complete_until,
    )  # fmt: skip
    if isinstance(begun, Committed):
        return begun
    with writing(database, settings, [begun]):
        try:
            staged = stage_table(settings.warehouse, begun, table)
        except OSError as error:
            raise not_writable(settings.warehouse, error) from error
        check_written(settings.warehouse, [staged])
        return commit_begun(database, staged)[0]


def stage_table(warehouse: str, attempt: Attempt, table: pa.Table) -> Staged:
    """Write the rows of each segment to files of its own, in the order of the table. Return what
    was written. Raises as `append_table`."""
    check_unused(warehouse, attempt.folder)
    columns = from_arrow(table.schema)
    fit_of = fitting(
        str(attempt.stream), attempt.fields, columns, attempt.on_new_column, attempt.dropped
    )
    fields = fit_of.fields
    _check_open(table, columns, fields)
    fit_of.announce()
    given = to_arrow([f for f in fields if f["name"] in table.schema.names])
    # A column without a value may have no type: then it is not kept.
    typeless = [name for name in table.schema.names if name not in given.names]
    table = pa.table([cast_column(table[field.name], field) for field in given], schema=given)
    for column in to_read(lacking_defaults(fields, columns)):
        table = table.append_column(column.remove_metadata(), absent(column, table.num_rows))
    keys = _routing_keys(attempt, table, typeless)
    timing = _Timing.of(attempt, table, fields)
    if timing is not None and timing.column.name == TIME:
        table = table.append_column(TIME, timing.times.cast(pa.timestamp("us", "UTC")))
    # From here on columns have the names of the files.
    stored = {field["name"]: stored_name(field) for field in fields}
    table = table.rename_columns([stored.get(name, name) for name in table.column_names])
    table = table.append_column(SEQ, pa.array(range(table.num_rows), pa.int64()))
    system, base = filesystem(warehouse)
    parts = [
        (segment, i + len(attempt.segments) * (first // ROWS_PER_FILE),
         rows.slice(first, ROWS_PER_FILE))
        for i, (segment, rows) in enumerate(_by_segment(attempt, keys, table))
        for first in range(0, rows.num_rows, ROWS_PER_FILE)
    ]  # fmt: skip

    def write(part: tuple[Segment, int, pa.Table]) -> StagedFile:
        file = _write(system, base, attempt, *part)
        return file if timing is None else timing.of_file(file, part[2])

    files: tuple[StagedFile, ...]
    if len(parts) == 1:
        files = (write(parts[0]),)
    else:  # an object store takes long for one file, and no longer for many
        with ThreadPoolExecutor(THREADS) as pool:
            files = tuple(pool.map(write, parts))
    staged = Staged(attempt, files, fields, added=fit_of.added, missing=fit_of.missing)
    if timing is None:
        return staged
    return replace(
        staged, times=timing.counted(attempt),
        count_late=partial(count_late, warehouse, files, timing.column),
    )  # fmt: skip


@dataclass(frozen=True)
class _Timing:
    """The event times of the rows of a table, and the column of the files that has them."""

    column: TimeColumn
    times: pa.ChunkedArray

    @classmethod
    def of(cls, attempt: Attempt, table: pa.Table, fields: list[Field]) -> "_Timing | None":
        if attempt.event_time is None:
            return None
        column = plain_column(attempt.event_time)
        if column is None:
            raise InvalidInput(
                "event_time_needs_spark",
                f"the event time of stream {attempt.stream} is the expression "
                f"{attempt.event_time!r}, which only Spark can compute; append with Spark (`pip "
                "install 'weir-streams[spark]'`).",
            )
        names = {name.lower(): name for name in table.schema.names}
        if column.lower() not in names:
            raise missing_column(attempt.stream, attempt.event_time, column, table.schema.names)
        name = names[column.lower()]
        [field] = [field for field in fields if field["name"] == name]
        kind = field["type"]
        check_type(attempt.stream, attempt.event_time, kind)
        unit = UNITS.get(kind) if isinstance(kind, str) else None
        where = TimeColumn(TIME, 1) if unit is None else TimeColumn(stored_name(field), unit)
        return cls(where, times_of(table[name]))

    def of_file(self, file: StagedFile, rows: pa.Table) -> StagedFile:
        found = range_of(times_of(rows[self.column.name]))
        return replace(file, min_time=found.low, max_time=found.high, untimed=found.untimed)

    def counted(self, attempt: Attempt) -> EventTimes:
        until = attempt.complete_until
        late = 0 if until is None else pc.sum(pc.less(self.times, until)).as_py() or 0
        return EventTimes(str(attempt.event_time), late, until)


def _check_open(table: pa.Table, columns: list[Field], fields: list[Field]) -> None:
    """Raise BadRows for a value, such as an empty list, in a column whose type is left open."""
    known = {field["name"] for field in fields}
    for i, field in enumerate(columns):
        column = table.column(i)
        if field["name"] not in known and column.null_count < len(column):
            raise BadRows(
                "bad_rows",
                f"column {field['name']!r} is {show(field['type'])}, in which the type of a part "
                "is not known, so its values can't be kept; cast it, or append rows with values "
                "of the part first.",
            )


def _write(
    system: fs.FileSystem, base: str, attempt: Attempt, segment: Segment, task: int, rows: pa.Table
) -> StagedFile:
    folder = f"{attempt.folder}{SEGMENT}={segment.segment_id}/{TASK}={task}"
    path = f"{folder}/part-{uuid.uuid4().hex}.c000.parquet"
    make_folder(system, f"{base}/{folder}")
    # In memory first: the hash is of bytes as they were made, not as they were read again.
    made = pa.BufferOutputStream()
    footers: list[pq.FileMetaData] = []
    pq.write_table(
        rows, made, compression="snappy",
        use_dictionary=[name for name in rows.column_names if name not in (SEQ, TIME)],
        column_encoding={SEQ: "DELTA_BINARY_PACKED"}, write_page_checksum=True,
        metadata_collector=footers,
    )  # fmt: skip
    whole = made.getvalue()
    with system.open_output_stream(f"{base}/{path}") as out:
        out.write(whole)
    ranks = rows[SEQ]
    file_hash, begin = hash_of(whole), begin_of_end(footers[0], whole.size)
    return StagedFile(
        segment.segment_id, path, rows.num_rows, whole.size, ranks[0].as_py(), ranks[-1].as_py(),
        hashes=sum_of_hashes(rows, [name for name in rows.column_names if name not in (SEQ, TIME)]),
        end_hash=hash_of(whole[begin:]) if begin else file_hash, file_hash=file_hash,
    )  # fmt: skip


def _by_segment(
    attempt: Attempt, keys: pa.ChunkedArray, table: pa.Table
) -> Iterator[tuple[Segment, pa.Table]]:
    """Yield the segments in the order of their key ranges, each with its rows (semantics 1.6)."""
    segments = sorted(attempt.segments, key=lambda segment: segment.key_low)
    if len(segments) == 1:
        yield segments[0], table
        return
    lows = [segment.key_low for segment in segments]

    def place(data: bytes) -> int:
        return bisect_right(lows, routing_steps(data) / STEPS) - 1

    texts: list[str | None] = keys.cast(pa.string()).to_pylist()  # exactly as Spark casts them
    places = {key: place(key.encode()) for key in set(texts) if key is not None}
    found = [
        place(struct.pack("<q", rank)) if key is None else places[key]
        for rank, key in enumerate(texts)
    ]
    table = table.take(pc.sort_indices(pa.array(found, pa.int32())))  # which is stable
    counts = Counter(found)
    begin = 0
    for i, segment in enumerate(segments):
        yield segment, table.slice(begin, counts[i])
        begin += counts[i]


def _routing_keys(attempt: Attempt, table: pa.Table, typeless: Sequence[str]) -> pa.ChunkedArray:
    """Return the column of routing keys. Raises InvalidInput if there is none, or if Spark alone
    turns it into texts; BadRows for rows without a key that the stream refuses.

    `typeless`: columns of the rows that the table lacks, because none of them has a value."""
    column = plain_column(attempt.routing_key)
    if column is None:
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key of stream {attempt.stream} is the expression "
            f"{attempt.routing_key!r}, which only Spark can compute; append with Spark (`pip "
            "install 'weir-streams[spark]'`).",
        )
    names = {name.lower(): name for name in table.schema.names}
    if column.lower() in map(str.lower, typeless):
        keys = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    elif column.lower() not in names:
        raise InvalidInput(
            "routing_key_column_missing",
            f"the routing key of stream {attempt.stream} is {column!r}, but the rows have no such "
            f"column (they have {', '.join(list(table.schema.names)[:8])}); add it.",
        )
    else:
        keys = table[names[column.lower()]]
    if keys.null_count and attempt.on_missing_key != "spread":
        raise BadRows(
            "bad_rows",
            f"{keys.null_count:,} of {len(keys):,} rows have no routing key ({column}); fill it "
            "in, append with Spark, which can quarantine them, or to place them anywhere "
            f"{do('update_stream', stream=str(attempt.stream), on_missing_key='spread')}.",
        )
    kind = keys.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
    ):
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key is {kind}, which only Spark can turn into text in the same way each "
            "time; append with Spark, or cast it to a string.",
        )
    return keys
