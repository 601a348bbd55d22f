"""Return the newest events of a stream without a JVM, and without looking at the others."""

from collections.abc import Sequence

import pyarrow as pa
from sqlalchemy import Connection

from weir.arrow.read import check_columns, concatenated, read_rows
from weir.controller.locks import read_stream
from weir.controller.missing import missing_between
from weir.controller.read_plan import FileSlice, newest_slices
from weir.controller.streams import schema_by_id
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.installation.opened import Installation
from weir.kernel.schema import to_read
from weir.model.names import StreamName, stream_name
from weir.model.schema import SEQ, Field
from weir.settings import Settings

Key = tuple[int, int]  # clock and rank: the write order


def tail_table(
    app: Installation, stream: str, count: int = 10, *, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the last `count` events of a stream in write order, with `_segment`, `_offset` and
    `_clock`.

    Reads the ends of the newest files, however many there are. Warns with `weir.TruncatedWarning`
    if there is none because all were truncated. Raises NotFound for a stream that does not exist,
    InvalidInput for a wrong count or column.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInput(
            "argument_invalid",
            f"the number of events is {count!r}; give a whole number of at least 1.",
        )
    name = stream_name(stream)
    found = tail_of(app.database, app.settings, name, count, columns)
    if not found.num_rows:
        lacks = app.database.snapshot(lambda c: missing_between(c, name, None, None, empty=True))
        if lacks:
            lacks.warn()
    return found


def tail_of(
    database: Database,
    settings: Settings,
    name: StreamName,
    count: int,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return the last events like `tail_table`, of an open database."""
    slices, fields = database.snapshot(lambda c: _plan(c, name, count))
    schema = to_read(fields)
    wanted = check_columns(str(name), schema, columns)
    found: list[pa.Table] = []
    keys: list[Key] = []
    for part in slices:
        keys.sort(reverse=True)
        if len(keys) >= count and keys[count - 1] > (part.first_clock, part.last_seq):
            break  # this file, and all after it in this order, end before the events found
        rows = read_rows(settings, last_rows(part, count), schema, wanted)
        found.append(rows)
        keys += [(part.first_clock, seq) for seq in rows[SEQ].to_pylist()]
    order = [("_clock", "ascending"), (SEQ, "ascending")]
    whole = concatenated(found, schema, wanted).sort_by(order)
    return whole.slice(max(0, whole.num_rows - count)).drop_columns([SEQ])


def last_rows(part: FileSlice, count: int) -> FileSlice:
    """Return the end of a slice, with its last `count` rows at least if it has so many."""
    return part._replace(first_row=max(part.first_row, part.end_row - part.holes - count))


def _plan(
    connection: Connection, name: StreamName, count: int
) -> tuple[list[FileSlice], list[Field]]:
    stream_id = read_stream(connection, name).stream_id
    return newest_slices(connection, stream_id, count), schema_by_id(connection, stream_id)
