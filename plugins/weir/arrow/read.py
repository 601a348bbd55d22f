"""Read a stream, or a part of it, as a pyarrow table, without a JVM."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from weir.arrow.event_time import EventSpan, event_span
from weir.controller.absent_files import not_asked, why_unread
from weir.controller.locks import read_stream
from weir.controller.missing import Missing, missing_between
from weir.controller.queries import Cut, count_between
from weir.controller.read_plan import FileSlice, plan
from weir.controller.streams import schema_at
from weir.controller.times import Moment, close_span, parse_span
from weir.errors import Conflict, InvalidInput, check_choice
from weir.installation.opened import Installation, shared_database
from weir.kernel.matching import Matching
from weir.kernel.schema import absent, in_file, to_read
from weir.model.names import stream_name
from weir.model.schema import CLOCK, SEQ, Field
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem
from weir.warehouse.row_offsets import rows_between

ORDERS = ("segment", "stream")
_PIECE, _MOST_ROWS = 4 << 20, 8192  # bytes and rows of a piece


def read_table(
    app: Installation,
    stream: str,
    *,
    start: Cut | None = None,
    end: Cut | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    event_time_since: Moment | None = None,
    event_time_until: Moment | None = None,
    columns: Sequence[str] | None = None,
    order: str = "segment",
    schema_version: int | None = None,
) -> pa.Table:
    """Return the events of a stream between two stream cuts or times, with their `_segment`,
    `_offset` and `_clock`.

    `start` None is the head, `end` None is the tail. In their place, `since` and `until` take what
    was committed after one time and up to another (in UTC, unless they have another offset), as far
    as it can still be read; the same times give the same events again. `event_time_since` and
    `event_time_until`: only the events whose event time is at or after the one and before the
    other, whenever they were committed; files that have none are not opened. With `order` "segment"
    rows are sorted by segment and offset, so the events of each routing key are in order; with
    "stream" they are in the order in which they were written.

    `schema_version`: of the columns; None for the newest. An older one has the columns and names
    that it had, and of each the widest type that it got since (semantics 5.5).

    Warns with `weir.TruncatedWarning` how many events after `since` were truncated; without a start
    if there is no event left to return. Raises NotFound for a stream that does not exist,
    InvalidInput for a wrong cut, time, column, order or version, Truncated if events after `start`
    were truncated.
    """
    check_choice("order", order, ORDERS)
    span = parse_span(since, until)
    span.check_alone(start, end)
    name, events = stream_name(stream), event_span(event_time_since, event_time_until)
    check_newest(events, schema_version)
    close_span(app.database, [name], span)

    def found(
        connection: Connection,
    ) -> tuple[list[FileSlice], list[Field], Missing | None, Matching | None]:
        row, within, match = read_stream(connection, name), span, None
        if events and start is None and end is None:
            within = events.commits(connection, row, span)
        slices, fields = plan(connection, name, within.since or start, within.until or end)
        if events:
            match = events.matching(row, fields)
            slices = events.files(connection, row.stream_id, slices)
        if schema_version is not None:
            fields = schema_at(connection, row.stream_id, schema_version)
        lacks = None
        if start is None and end is None:
            lacks = missing_between(connection, name, *within, empty=not slices)
        return slices, fields, lacks, match

    slices, fields, lacks, match = app.database.snapshot(found)
    if lacks:
        lacks.warn()
    schema = to_read(fields)
    wanted = check_columns(stream, schema, columns)
    whole = concatenated([matching_rows(app.settings, s, schema, wanted, match) for s in slices],
                         schema, wanted)  # fmt: skip
    if order == "stream":
        whole = whole.sort_by([("_clock", "ascending"), (SEQ, "ascending")])
    return whole.drop_columns([SEQ])


def check_newest(events: EventSpan | None, schema_version: int | None) -> None:
    """Check that event times are asked for with the newest columns, of which they are made. Raises
    InvalidInput."""
    if events and schema_version is not None:
        raise InvalidInput(
            "arguments_conflict",
            f"schema_version is {schema_version}, and event times are made of the newest columns; "
            "leave one of the two out.",
        )


def matching_rows(
    settings: Settings, part: FileSlice, schema: pa.Schema, wanted: Sequence[str],
    match: Matching | None,
) -> pa.Table:  # fmt: skip
    """Return the wanted rows of one file as `read_rows`, of which only those that match."""
    if match is None:
        return read_rows(settings, part, schema, wanted)
    more = [name for name in match.columns if name not in wanted]
    rows = read_rows(settings, part, schema, [*wanted, *more])
    return rows.filter(match.rows(rows)).drop_columns(more)


def check_columns(stream: str, schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    """Return the columns to read: all of the stream's for None. Raises InvalidInput for one that
    the stream does not have."""
    if isinstance(columns, str):
        raise InvalidInput(
            "argument_invalid",
            f"columns is {columns!r}; give a list of names, such as [{columns!r}].",
        )
    wanted = list(schema.names) if columns is None else list(columns)
    for column in wanted:
        if column not in schema.names:
            raise unknown_column(stream, column, schema.names)
    return wanted


def unknown_column(stream: object, column: str, columns: Sequence[str]) -> InvalidInput:
    """Return the error for a column that a stream does not have."""
    return InvalidInput(
        "column_unknown",
        f"stream {stream} has no column {column!r}; choose among its columns: "
        f"{', '.join(columns)}.",
    )


def concatenated(parts: Sequence[pa.Table], schema: pa.Schema, wanted: Sequence[str]) -> pa.Table:
    """Return the rows of several parts, with the columns of `read_rows` even if there is none."""
    empty = pa.schema(
        [*(schema.field(n).remove_metadata() for n in wanted),
         *(pa.field(n, pa.int64()) for n in ("_segment", "_offset", "_clock", SEQ))]
    ).empty_table()  # fmt: skip
    return pa.concat_tables([empty, *parts])


def count_events(
    app: Installation, stream: str, *, since: Moment | None = None, until: Moment | None = None
) -> int:
    """Return how many events `read` returns for two times, without reading them.

    Warns as `read` does. Raises NotFound for a stream that does not exist, InvalidInput for a wrong
    time.
    """
    name, span = stream_name(stream), parse_span(since, until)
    events = count_between(app.database, name, *span)
    lacks = app.database.snapshot(lambda c: missing_between(c, name, *span, empty=events == 0))
    if lacks:
        lacks.warn()
    return events


def read_slice(
    settings: Settings, part: FileSlice, fields: list[Field], wanted: Sequence[str]
) -> pa.Table:
    """Return the wanted rows of one file, with `_segment`, `_offset` and `_clock`."""
    return read_rows(settings, part, to_read(fields), wanted).drop_columns([SEQ])


def read_rows(
    settings: Settings, part: FileSlice, schema: pa.Schema, wanted: Sequence[str], *,
    piecewise: bool = False,
) -> pa.Table:  # fmt: skip
    """Return the wanted rows of one file with their ranks (`_weir_seq`), by a schema of
    `weir.kernel.schema.to_read`. Columns that the file does not have are null, or their defaults.

    Only the row groups that hold the rows are read; `piecewise`: a few MB of them at a time, for a
    few rows of large ones. `settings` without a database are those of a worker that has no way to
    Postgres. Raises what `why_unread` returns for a file that can't be read, and Conflict for a
    value that the schema's type does not hold, because the column was widened since."""
    system, base = filesystem(settings.warehouse)
    try:
        with system.open_input_file(f"{base}/{part.path}") as source:
            # What Spark wrote when it still wrote INT96: nanoseconds would overflow.
            file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            there = set(file.schema_arrow.names)
            begin, past = part.start_offset + part.first_row, part.start_offset + part.end_row
            offsets, first, end = rows_between(
                file, part.start_offset, begin, past, sparse=part.sparse
            )
            groups, before = _row_groups(file.metadata, first, end)
            several = part.first_clock < part.last_clock
            stored = [in_file(schema.field(n)) for n in wanted]
            columns = [*(n for n in stored if n in there), SEQ]
            columns += [CLOCK] if several else []
            if piecewise:
                table = _pieces(file, groups, columns, first - before, end - before)
                before = first
            else:
                table = file.read_row_groups(groups, columns=columns)
    except (OSError, pa.ArrowInvalid) as error:
        if not settings.database:
            raise not_asked(settings.warehouse, part.path, error) from error
        _, database = shared_database(settings)
        raise why_unread(database, settings.warehouse, part.path, error) from error
    table = table.slice(first - before, end - first)
    count = table.num_rows
    places = [
        pa.repeat(pa.scalar(part.segment_id, pa.int64()), count),
        offsets,
        table[CLOCK] if several else pa.repeat(pa.scalar(part.first_clock, pa.int64()), count),
        table[SEQ].cast(pa.int64()),
    ]
    names = ["_segment", "_offset", "_clock", SEQ]
    fields = [schema.field(n).remove_metadata() for n in wanted] + [
        pa.field(n, pa.int64()) for n in names
    ]
    return pa.table([*by_schema(table, schema, wanted), *places], schema=pa.schema(fields))


def by_schema(
    table: pa.Table, schema: pa.Schema, wanted: Sequence[str]
) -> list[pa.ChunkedArray | pa.Array]:
    """Return the wanted columns of a table of a file by a schema of `weir.kernel.schema.to_read`.
    Raises Conflict as `read_rows`."""
    columns = [schema.field(name) for name in wanted]
    return [
        _in_type(table[in_file(column)], column) if in_file(column) in table.column_names
        else absent(column, table.num_rows)
        for column in columns
    ]  # fmt: skip


def _pieces(
    file: pq.ParquetFile, groups: list[int], columns: list[str], first: int, end: int
) -> pa.Table:
    """Return the rows from `first` to `end` of some row groups, of which little is decoded at a
    time."""
    found = [file.metadata.row_group(i) for i in groups]
    count = max(1, sum(one.num_rows for one in found))
    bytes_each = max(1, sum(one.total_byte_size for one in found) // count)
    size = max(1, min(_MOST_ROWS, _PIECE // bytes_each))
    kept, at = [file.schema_arrow.empty_table().select(columns)], 0
    for batch in file.iter_batches(size, row_groups=groups, columns=columns):
        low, high = max(first - at, 0), min(end - at, batch.num_rows)
        if low < high:
            rows = pa.Table.from_batches([batch]).select(columns)
            kept.append(rows.take(pa.array(range(low, high), pa.int64())))  # frees the others
        at += batch.num_rows
        if at >= end:
            break
    return pa.concat_tables(kept)


def _in_type(values: pa.ChunkedArray, column: pa.Field) -> pa.ChunkedArray:
    """Return the values of a file in the type of a column. Raises Conflict for one that would
    change."""
    try:
        found = values.cast(column.type)
        # A double becomes the nearest float, and a time its date, without an error.
        narrower = any(
            str(values.type).count(wide) > str(column.type).count(wide)
            for wide in ("double", "timestamp")
        )
        if not narrower or found.cast(values.type).equals(values):
            return found
        why = "a value is not the same in both types"
    except pa.ArrowInvalid as error:
        why = str(error)
    raise Conflict(
        "schema_changed",
        f"column {column.name!r} is read as {column.type}, but was widened to {values.type} since "
        f"this read or query began ({why}); begin it again, and it has the wider type.",
    )


def _row_groups(metadata: pq.FileMetaData, first: int, end: int) -> tuple[list[int], int]:
    """Return the row groups with the rows from `first` to `end`, and how many rows are before
    them."""
    groups, before, row = [], 0, 0
    for i in range(metadata.num_row_groups):
        group_end = row + metadata.row_group(i).num_rows
        if group_end <= first:
            before = group_end
        elif row < end:
            groups.append(i)
        row = group_end
    return groups, before
