"""Rows that do not become events, sorted out where the rows are (`weir.arrow.rejected` refuses or
quarantines them where an append is committed)."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from weir.errors import BadRows
from weir.kernel.attempt import StagedFile
from weir.kernel.keys import A_KEY, NO_KEY
from weir.kernel.schema import cast_column
from weir.kernel.segment_files import segment_file
from weir.kernel.stage import Layout
from weir.kernel.texts import rows_as_json
from weir.kernel.values import rows_of
from weir.model.schema import SEQ, show
from weir.warehouse.paths import REJECTED_SEGMENT

MISSING_KEY, BAD_ROW = "missing routing key", "does not fit the schema"  # reasons
# The type of a column in which no value has shown one, such as a list that is always empty.
LEFT_OPEN = "a column, because no value shows its type (declare the column)"
# The column, the text and the type of the first value that did not fit.
FAULT = ("column", "text", "type")
# Of a row that comes marked: a struct of its text and its fault; null of one that fits.
MALFORMED, ROW = "_weir_malformed", "row"
NOT_UTF8 = "string, because it is not UTF-8"
SHOWN = 80  # characters of a value
_AT_ONCE = 32 << 20  # bytes of rejected rows that a writer keeps
SCHEMA = pa.schema(
    [(name, pa.int64() if name == SEQ else pa.string()) for name in (ROW, "reason", *FAULT, SEQ)]
)

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Ranks = np.ndarray[tuple[int], np.dtype[np.int64]]


class RejectedFiles:
    """Writes the rejected rows of a task to files of their own."""

    def __init__(self, layout: Layout, task: int) -> None:
        self._layout, self._task = layout, task
        self._rows: list[pa.Table] = []
        self._size = 0
        self._done: list[StagedFile] = []

    def add(self, rows: pa.Table) -> None:
        """Add rejected rows (`SCHEMA`)."""
        self._rows.append(rows)
        self._size += rows.nbytes
        if self._size > _AT_ONCE:
            self._write()

    def end(self) -> tuple[StagedFile, ...]:
        """Write what waits, and return all files."""
        if self._rows:
            self._write()
        return tuple(self._done)

    def _write(self) -> None:
        rows, place = pa.concat_tables(self._rows).sort_by(SEQ), self._layout
        self._rows, self._size = [], 0
        file = segment_file(
            place, REJECTED_SEGMENT, self._task, len(self._done), SCHEMA,
            [name for name in SCHEMA.names if name not in ("reason", "column", "type")],
        )  # fmt: skip
        file.write(rows)
        size, end_hash, file_hash = file.end()
        ranks = rows[SEQ]
        self._done.append(
            StagedFile(
                REJECTED_SEGMENT, file.path, rows.num_rows, size, ranks[0].as_py(),
                ranks[-1].as_py(), end_hash=end_hash, file_hash=file_hash,
            )
        )  # fmt: skip


def marked(table: pa.Table, ranks: Ranks) -> tuple[Mask, pa.Table]:
    """Return which rows come marked as malformed, and these as rejected rows."""
    why = table[MALFORMED].combine_chunks()
    bad = why.is_valid().to_numpy(zero_copy_only=False)
    if not bad.any():
        return bad, SCHEMA.empty_table()
    why = why.filter(pa.array(bad))
    parts = {name: why.field(name) for name in (ROW, *FAULT)}
    return bad, _rejected(parts, BAD_ROW, ranks[bad])


def not_kept(layout: Layout, table: pa.Table, ranks: Ranks) -> tuple[Mask, pa.Table]:
    """Return which rows have a value that a stream can't keep, and these as rejected rows: a text
    that is not UTF-8, a value that its column's type would change, or one in a column whose type is
    left open, such as an empty list."""
    faults: dict[int, tuple[str, str]] = {}
    for one in layout.columns:
        name = one["name"]
        for row, kind in _wrong(layout, table[name], name):
            faults.setdefault(row, (name, kind))
    bad = np.zeros(table.num_rows, bool)
    if not faults:
        return bad, SCHEMA.empty_table()
    bad[list(faults)] = True
    return bad, _rejected(with_faults(table, faults), BAD_ROW, ranks[bad])


def with_faults(table: pa.Table, faults: dict[int, tuple[str, str]]) -> dict[str, pa.Array]:
    """Return, of rows by their numbers, the texts of them and their faults (`ROW`, `FAULT`).
    `faults`: the column whose value does not fit, and what it is not."""
    rows = sorted(faults)
    texts, values = [], []
    for row in rows:
        one = rows_of(table.slice(row, 1))[0]
        texts.append(json.dumps(one, default=str, ensure_ascii=False))
        values.append(str(one[faults[row][0]])[:SHOWN])
    columns, kinds = zip(*(faults[row] for row in rows), strict=True)
    parts = {ROW: texts, **dict(zip(FAULT, (columns, values, kinds), strict=True))}
    return {name: pa.array(values, pa.string()) for name, values in parts.items()}


def without_key(layout: Layout, rows: pa.Table, _: pa.ChunkedArray, ranks: Ranks) -> pa.Table:
    """Return rows without a routing key as rejected rows."""
    texts = rows_as_json(rows.select(layout.schema.names))
    return _rejected({ROW: pa.array(texts, pa.string())}, MISSING_KEY, ranks)


def with_wrong_key(layout: Layout, rows: pa.Table, keys: pa.ChunkedArray, ranks: Ranks) -> pa.Table:
    """Return rows whose routing keys no event can have as rejected rows."""
    return _with_bad_key(layout, rows, keys.to_pylist(), A_KEY, ranks)


def with_failing_key(layout: Layout, rows: pa.Table, _: pa.ChunkedArray, ranks: Ranks) -> pa.Table:
    """Return rows of whose values no routing key can be made as rejected rows."""
    columns = [name for name in layout.key.columns if name in rows.column_names]
    values = [", ".join(str(one[name]) for name in columns) for one in rows_of(rows)]
    return _with_bad_key(layout, rows, values, NO_KEY, ranks)


def _with_bad_key(
    layout: Layout, rows: pa.Table, texts: list[str], kind: str, ranks: Ranks
) -> pa.Table:
    count = len(ranks)
    parts = {
        ROW: pa.array(rows_as_json(rows.select(layout.schema.names)), pa.string()),
        "column": pa.repeat(pa.scalar(layout.attempt.routing_key), count),
        "text": pa.array([text[:SHOWN] for text in texts], pa.string()),
        "type": pa.repeat(pa.scalar(kind), count),
    }
    return _rejected(parts, BAD_ROW, ranks)


def _rejected(parts: dict[str, pa.Array], reason: str, ranks: Ranks) -> pa.Table:
    count = len(ranks)
    columns = {**parts, "reason": pa.repeat(pa.scalar(reason), count), SEQ: pa.array(ranks)}
    nothing = pa.nulls(count, pa.string())
    return pa.table([columns.get(one, nothing) for one in SCHEMA.names], schema=SCHEMA)


def _wrong(layout: Layout, column: pa.ChunkedArray, name: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of values that can't be kept, and what they are not."""
    if name not in layout.schema.names:
        if column.null_count < len(column) and not pa.types.is_null(column.type):
            yield from ((int(i), LEFT_OPEN) for i in np.flatnonzero(column.is_valid().to_numpy()))
        return
    wanted = layout.schema.field(name)
    if _fits(column, wanted):
        return
    for row in range(len(column)):
        one = column.take(pa.array([row]))  # a slice alone would still have the other values
        if not _is_valid(one):
            yield row, NOT_UTF8
        elif not _fits(one, wanted):
            yield row, show(next(f["type"] for f in layout.fit.fields if f["name"] == name))


def _is_valid(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _fits(column: pa.ChunkedArray, wanted: pa.Field) -> bool:
    try:
        cast_column(column, wanted)
    except BadRows:
        return False
    return True
