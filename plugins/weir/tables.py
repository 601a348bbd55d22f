"""Append and read without a JVM, for small things: pyarrow tables.

The same transactions, files and order as with Spark; a stream can be written by one and read by the
other.
"""

import json
import re
import struct
import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from pyarrow import fs
from sqlalchemy import Connection, text

from weir.arrow_schema import from_arrow, to_arrow
from weir.controller.commit import commit
from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream, read_stream
from weir.controller.queries import Cut, segments_between
from weir.controller.reads import FileSlice, plan_of_bounds
from weir.controller.staged import Staged, StagedFile
from weir.controller.transactions import Attempt, Committed, abort, begin, ping_all
from weir.errors import BadRows, InvalidInput, Truncated, Unavailable
from weir.garbage import check_warehouse_ownership
from weir.names import StreamName, stream_name
from weir.schema import Field, merge
from weir.segment import Segment
from weir.settings import Settings, load
from weir.storage import Database
from weir.warehouse import check_unused, filesystem

_SEQ = "_weir_seq"
_SEED = 42  # Spark's own for xxhash64
_STEPS = 1 << 53
_ROWS_PER_FILE = 1_000_000
_COLUMN = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)")
ORDERS = ("segment", "stream")


def append(
    stream: str,
    table: pa.Table,
    *,
    writer_id: str,
    batch_id: str,
    source: str = "program",
    settings: Settings | None = None,
) -> Committed:
    """Append the rows of a pyarrow table to a stream, in their order, as one transaction.

    `writer_id` and `batch_id` are its identity: a retry appends nothing twice. The routing key must
    be a column of strings, whole numbers, booleans or dates; for an expression, and to quarantine
    rows, append with Spark. Raises BadRows for rows without a key, InvalidInput for columns that
    don't fit.
    """
    settings = settings or load()
    database = Database.of(settings)
    try:
        begun = begin(
            database, stream_name(stream), writer_id=writer_id, batch_id=batch_id,
            fingerprint="table", lease=settings.transaction_lease, source=source,
        )  # fmt: skip
        if isinstance(begun, Committed):
            return begun
        try:
            check_warehouse_ownership(database, settings.warehouse)
            lease, longest = settings.transaction_lease, settings.transaction_max
            with database.keep_alive(
                lambda c: ping_all(c, [begun], lease, longest), every=lease / 3
            ):
                staged = _stage(settings.warehouse, begun, table)
            return commit(database, staged)[0]
        except Exception as error:
            if not isinstance(error, Unavailable):  # then nobody knows whether it was committed
                abort(database, begun)
            raise
    finally:
        database.dispose()


def read(
    stream: str,
    *,
    start: Cut | None = None,
    end: Cut | None = None,
    columns: Sequence[str] | None = None,
    order: str = "segment",
    settings: Settings | None = None,
) -> pa.Table:
    """The events of a stream from one cut (None: the head) to another (None: the tail).

    With `_segment`, `_offset` and `_clock`. `order`: "segment": by segment and offset, so that the
    events of a key are in order; "stream": write order. Raises NotFound, InvalidInput, and
    Truncated when events after `start` are not there any more.
    """
    if order not in ORDERS:
        raise InvalidInput(
            "argument_invalid", f"order is {order!r}; use one of {', '.join(ORDERS)}."
        )
    settings = settings or load()
    database = Database.of(settings)
    name = stream_name(stream)
    try:
        slices, fields = database.snapshot(lambda c: plan(c, name, start, end))
    finally:
        database.dispose()
    schema = to_arrow(fields)
    wanted = list(schema.names) if columns is None else list(columns)
    for column in wanted:
        if column not in schema.names:
            raise InvalidInput(
                "column_unknown",
                f"stream {stream} has no column {column!r} (it has {', '.join(schema.names)}).",
            )
    parts = [_read(settings.warehouse, s, schema, wanted) for s in slices]
    empty = pa.schema(
        [*(schema.field(n) for n in wanted),
         *(pa.field(n, pa.int64()) for n in ("_segment", "_offset", "_clock", _SEQ))]
    ).empty_table()  # fmt: skip
    whole = pa.concat_tables([empty, *parts])
    if order == "stream":
        whole = whole.sort_by([("_clock", "ascending"), (_SEQ, "ascending")])
    return whole.drop_columns([_SEQ])


def plan(
    connection: Connection,
    name: StreamName,
    start: Cut | None,
    end: Cut | None,
    on_gap: str = "fail",
) -> tuple[list[FileSlice], list[Field]]:
    """The files to read from one cut to another, by segment and offset, and the schema.

    Call it in a snapshot, or what is truncated between two of its statements is not missed. Raises
    Truncated when events after `start` were truncated, unless `on_gap` is "skip".
    """
    stream = read_stream(connection, name)
    asked = 0
    if start is not None:
        asked = _asked(connection, stream, start, end, on_gap)
    # Of a file that lies partly below the head, what is below it is truncated like other files.
    first, last = readable(connection, stream.stream_id, start, end)
    rows = segments_between(connection, name, first, last)
    bounds = [(r.segment_id, r.from_offset, r.to_offset) for r in rows]
    slices, fields = plan_of_bounds(connection, stream.stream_id, bounds)
    lost = asked - sum(s.end_row - s.first_row for s in slices)
    if lost > 0:
        raise Truncated(
            "events_truncated",
            f"{lost} events of stream {name} after the cut {json.dumps(start)} were truncated; "
            f"begin at the head, {json.dumps(stream.head)}, or later.",
        )
    return slices, fields


def _asked(
    connection: Connection, stream: LockedStream, start: Cut, end: Cut | None, on_gap: str
) -> int:
    """Return how many events between two cuts must be there: none that `on_gap` may skip.

    Raises InvalidInput for a cut that is not one, and Truncated where metadata was pruned.
    """
    try:
        load_cuts(connection, stream.stream_id, start, *([] if end is None else [end]))
        between = segments_between(connection, stream.name, start, end)
    except Truncated:
        if on_gap == "fail":
            raise
        return 0
    if on_gap == "skip":
        return 0
    return sum(row.to_offset - row.from_offset for row in between)


def readable(
    connection: Connection, stream_id: int, start: Cut | None, end: Cut | None
) -> tuple[Cut | None, Cut | None]:
    """What can be read still of what lies between two cuts: both, or the head where that is
    later."""
    if start is None:
        return start, end
    row = connection.execute(
        text(
            """SELECT r.cut, join_cuts(:s, CAST(:end AS jsonb), r.cut) AS past
            FROM stream CROSS JOIN LATERAL
                (SELECT readable_cut(:s, CAST(:start AS jsonb), head) AS cut OFFSET 0) r
            WHERE stream_id = :s"""
        ),
        {
            "s": stream_id,
            "start": json.dumps(start),
            "end": None if end is None else json.dumps(end),
        },
    ).one()
    return row.cut, row.past


def read_slice(
    warehouse: str, part: FileSlice, fields: list[Field], wanted: Sequence[str]
) -> pa.Table:
    """The rows of a file that are wanted, with `_segment`, `_offset` and `_clock`."""
    return _read(warehouse, part, to_arrow(fields), wanted).drop_columns([_SEQ])


def _read(warehouse: str, part: FileSlice, schema: pa.Schema, wanted: Sequence[str]) -> pa.Table:
    """The same with the ranks; columns that the file has not are null."""
    system, base = filesystem(warehouse)
    with system.open_input_file(f"{base}/{part.path}") as source:
        # What Spark wrote when it still wrote INT96: nanoseconds would overflow.
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        there = set(file.schema_arrow.names)
        table = file.read(columns=[*(n for n in wanted if n in there), _SEQ])
    table = table.slice(part.first_row, part.end_row - part.first_row)
    count = table.num_rows
    columns = [
        table[n].cast(schema.field(n).type) if n in there else pa.nulls(count, schema.field(n).type)
        for n in wanted
    ]
    first = part.start_offset + part.first_row
    places = [
        pa.repeat(pa.scalar(part.segment_id, pa.int64()), count),
        pa.array(range(first, first + count), pa.int64()),
        pa.repeat(pa.scalar(part.clock, pa.int64()), count),
        table[_SEQ].cast(pa.int64()),
    ]
    names = ["_segment", "_offset", "_clock", _SEQ]
    fields = [schema.field(n) for n in wanted] + [pa.field(n, pa.int64()) for n in names]
    return pa.table([*columns, *places], schema=pa.schema(fields))


def _stage(warehouse: str, attempt: Attempt, table: pa.Table) -> Staged:
    """Write the rows of each segment to files of their own, in the order of the table."""
    check_unused(warehouse, attempt.folder)
    fields = merge(str(attempt.stream), attempt.fields, from_arrow(table.schema))
    given = to_arrow([f for f in fields if f["name"] in table.schema.names])
    table = table.select(given.names).cast(given)
    ordinals = _ordinals(attempt, table)
    table = table.append_column(_SEQ, pa.array(range(table.num_rows), pa.int64()))
    table = table.take(pc.sort_indices(ordinals))  # which is stable
    counts = Counter(ordinals.to_pylist())
    system, base = filesystem(warehouse)
    files = []
    past = 0
    for i, segment in enumerate(_by_range(attempt)):
        rows = table.slice(past, counts[i])
        past += counts[i]
        for first in range(0, rows.num_rows, _ROWS_PER_FILE):
            task = i + len(attempt.segments) * (first // _ROWS_PER_FILE)
            part = rows.slice(first, _ROWS_PER_FILE)
            files.append(_write(system, base, attempt, segment, task, part))
    return Staged(attempt, tuple(files), fields)


def _write(
    system: fs.FileSystem, base: str, attempt: Attempt, segment: Segment, task: int, rows: pa.Table
) -> StagedFile:
    folder = f"{attempt.folder}_weir_segment={segment.segment_id}/_weir_task={task}"
    path = f"{folder}/part-{uuid.uuid4().hex}.c000.parquet"
    system.create_dir(f"{base}/{folder}", recursive=True)
    with system.open_output_stream(f"{base}/{path}") as out:
        pq.write_table(
            rows, out, compression="snappy", use_dictionary=rows.column_names[:-1],
            column_encoding={_SEQ: "DELTA_BINARY_PACKED"},
        )  # fmt: skip
    size = system.get_file_info(f"{base}/{path}").size
    ranks = rows[_SEQ]
    return StagedFile(
        segment.segment_id, path, rows.num_rows, size, ranks[0].as_py(), ranks[-1].as_py()
    )


def _by_range(attempt: Attempt) -> list[Segment]:
    return sorted(attempt.segments, key=lambda segment: segment.key_low)


def _ordinals(attempt: Attempt, table: pa.Table) -> pa.Array:
    """Per row which of the segments, by range, its routing key falls into."""
    match = _COLUMN.fullmatch(attempt.routing_key.strip())
    column = match and (match[1] or match[2])
    if column is None:
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key of stream {attempt.stream} is the expression "
            f"{attempt.routing_key!r}; append to it with Spark.",
        )
    names = {name.lower(): name for name in table.schema.names}
    if column.lower() not in names:
        raise InvalidInput(
            "routing_key_column_missing",
            f"the routing key of stream {attempt.stream} is {column!r}, but the rows have no such "
            f"column (they have {', '.join(list(table.schema.names)[:8])}).",
        )
    keys = table[names[column.lower()]]
    if keys.null_count and attempt.on_missing_key != "spread":
        raise BadRows(
            "bad_rows",
            f"{keys.null_count:,} of {len(keys):,} rows have no routing key ({column}); fill it "
            "in, or set on_missing_key to spread with weir_update_stream, or append with Spark to "
            "quarantine them.",
        )
    lows = [segment.key_low for segment in _by_range(attempt)]

    @cache
    def place(data: bytes) -> int:
        position = (xxhash.xxh64_intdigest(data, _SEED) >> 11) / _STEPS
        return bisect_right(lows, position) - 1

    found = [
        place(struct.pack("<q", rank) if key is None else key.encode())
        for rank, key in enumerate(_texts(keys))
    ]
    return pa.array(found, pa.int32())


def _texts(keys: pa.ChunkedArray) -> list[str | None]:
    """The keys as Spark casts them to a string."""
    kind = keys.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
    ):
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key is {kind}, which Spark writes as text in its own way; append with "
            "Spark, or make it a string.",
        )
    texts: list[str | None] = keys.cast(pa.string()).to_pylist()
    return texts
