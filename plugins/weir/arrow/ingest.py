"""Append files without a JVM: read their rows into this process, and stage them as a table."""

from collections.abc import Callable, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from weir.arrow.rejected import staged_rejected
from weir.errors import InvalidInput
from weir.inputs.csv_pieces import Piece
from weir.inputs.csv_rows import csv_values
from weir.inputs.files import BLOCK_BITS, ROW_BITS, Inputs
from weir.inputs.folder_names import partitions_of
from weir.inputs.parquet_rows import parquet_rows
from weir.inputs.rows import MOST_BYTES, Rows, needs_spark
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.stage import Layout
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value
from weir.kernel.writer import write_batches
from weir.model.schema import SEQ, Field, show
from weir.warehouse.filesystem import not_writable


def stage_files(app: Installation, inputs: Inputs, attempts: list[Attempt]) -> list[Staged]:
    """Write the rows of files for the one open attempt. Return the appends to commit together.

    If there are rejected rows, the attempt that has them is added to the open ones. Raises
    InvalidInput, whose code ends in `needs_spark`, for what only Spark appends, before anything is
    written.
    """
    [attempt] = attempts
    _check(inputs)
    if inputs.format == "csv":
        values = csv_values(inputs, attempt.fields, app.say, _here, MOST_BYTES)
        tables = chain.from_iterable(map(values.tables, values.pieces))
        rows = Rows(values.fields, tables)
    else:
        rows = parquet_rows(inputs)
    rows = _with_partitions(rows, inputs, attempt.fields, app)
    warehouse = app.settings.warehouse
    layout = Layout.of(warehouse, attempt, rows.fields)
    layout.fit.announce(app.say)
    try:
        batches = chain.from_iterable(table.to_batches() for table in rows.tables)
        written = write_batches(layout, batches)
    except OSError as error:
        raise not_writable(warehouse, error) from error
    return staged_rejected(app, layout.staged([written]), attempts, inputs.origin)


def _check(inputs: Inputs) -> None:
    """Raise InvalidInput for what only Spark appends, as far as that is known before any file is
    read."""
    size = sum(file.bytes for file in inputs.files)
    if size > MOST_BYTES:
        raise needs_spark(
            f"the files have {size:,} bytes, and one process reads at most {MOST_BYTES:,}"
        )
    if inputs.format == "json":
        raise needs_spark("Weir reads json with Spark only")


def _with_partitions(
    rows: Rows, inputs: Inputs, known: list[Field] | None, app: Installation
) -> Rows:
    """Return the rows with the columns that the folders of their files hold: of the type that they
    have in the stream, else texts."""
    partitions = partitions_of([file.path for file in inputs.files])
    if not partitions:
        return rows
    app.say(f"columns from the names of folders: {', '.join(partitions)}")
    fields, given = list(rows.fields), {f["name"].lower() for f in rows.fields}
    types = {one["name"].lower(): one["type"] for one in known or []}
    columns = {}
    for name, texts in partitions.items():
        kind = types.get(name.lower(), "string")
        if name.lower() in given or not isinstance(kind, str) or kind == "void":
            raise needs_spark(f"column {name!r} is in the files and in the names of folders")
        column = pa.chunked_array([pa.array(texts, pa.string())])
        columns[name] = value(column, show(kind), TextOptions())
        if columns[name].null_count > column.null_count:
            raise needs_spark(f"a folder has a value of {name!r} that is written in another way")
        fields.append({"name": name, "type": kind, "nullable": True, "metadata": {}})

    def with_columns(table: pa.Table) -> pa.Table:
        files = pc.shift_right(table[SEQ], BLOCK_BITS + ROW_BITS)
        for name, values in columns.items():
            table = table.append_column(name, values.take(files))
        return table

    return Rows(fields, map(with_columns, rows.tables))


def _here(function: Callable[[Piece], str], pieces: Sequence[Piece]) -> list[str]:
    return list(map(function, pieces))


def is_for_spark(error: InvalidInput) -> bool:
    """Return whether an error says that only Spark can append."""
    return error.code.endswith("needs_spark")
