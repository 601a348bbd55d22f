"""Rows that do not become events, sorted out where the rows are (`weir.arrow.rejected` refuses or
quarantines them where an append is committed)."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from weir.kernel.attempt import StagedFile
from weir.kernel.stage import Layout, Written
from weir.kernel.texts import rows_as_json
from weir.kernel.values import rows_of
from weir.model.schema import SEQ
from weir.warehouse.paths import REJECTED_SEGMENT

MISSING_KEY, BAD_ROW = "missing routing key", "does not fit the schema"  # reasons
# The type of a column in which no value has shown one, such as a list that is always empty.
LEFT_OPEN = "a column, because no value shows its type (declare the column)"
# The column, the text and the type of the first value that did not fit.
FAULT = ("column", "text", "type")
_TYPE, _SHOWN = "string, because it is not UTF-8", 80
_ROW_BITS = 33  # of a rank, for the row in its task
_NAMES = ("row", "place", "reason", "column", "text", "type", SEQ)
_SCHEMA = pa.schema(
    [(name, pa.int64() if name in ("place", SEQ) else pa.string()) for name in _NAMES]
)


def write_sorted(layout: Layout, table: pa.Table, first: int, task: int, chunk: int) -> Written:
    """Write the rows of a table, those that are no events to a file of their own. `first`: the rank
    of the first row. `task`, `chunk`: as for `Layout.write`."""
    ranks = np.arange(first, first + table.num_rows, dtype=np.int64)
    found: list[tuple[object, ...]] = []
    bad = np.zeros(table.num_rows, bool)
    for row, column in _not_kept(layout, table):
        if bad[row]:
            continue
        bad[row] = True
        one = table.slice(row, 1)
        value = one[column].combine_chunks()
        shown_value = str(rows_of(pa.table([value], [column]))[0][column])[:_SHOWN]
        kind = _TYPE if column in layout.schema.names else LEFT_OPEN
        shown = json.dumps(rows_of(one)[0], default=str, ensure_ascii=False)
        place = int(ranks[row]) & ((1 << _ROW_BITS) - 1)
        found.append((shown, place, BAD_ROW, column, shown_value, kind, int(ranks[row])))
    if found:
        table, ranks = table.filter(pa.array(~bad)), ranks[~bad]
    rows = layout.fitted(table)
    if layout.attempt.on_missing_key != "spread" and (keys := layout.keys(rows)).null_count:
        lost = keys.is_null().to_numpy()
        texts = rows_as_json(rows.filter(pa.array(lost)).select(layout.schema.names))
        for text, rank in zip(texts, ranks[lost].tolist(), strict=True):
            place = rank & ((1 << _ROW_BITS) - 1)
            found.append((text, place, MISSING_KEY, None, None, None, rank))
        rows, ranks = rows.filter(pa.array(~lost)), ranks[~lost]
    written = Written()
    if rows.num_rows:
        written = layout.write(rows, pa.array(ranks), task, chunk)
    if not found:
        return written
    found.sort(key=lambda one: one[-1])  # type: ignore[arg-type,return-value]
    return written + Written(rejected=(_put(layout, found, task, chunk),))


def _not_kept(layout: Layout, table: pa.Table) -> Iterator[tuple[int, str]]:
    """Yield the rows with a value that a stream can't keep, and its column: a text that is not
    UTF-8, or a value in a column whose type is left open, such as an empty list."""
    for name in table.column_names:
        column = table[name]
        if name not in layout.schema.names:
            if column.null_count < table.num_rows and not pa.types.is_null(column.type):
                yield from ((int(i), name) for i in np.flatnonzero(column.is_valid().to_numpy()))
        else:
            yield from ((i, name) for i in _invalid(column, 0, table.num_rows))


def _invalid(column: pa.ChunkedArray, first: int, end: int) -> Iterator[int]:
    part = column.slice(first, end - first)
    if first > 0 or end < len(column):  # a slice alone would still have the other values
        part = part.take(pa.array(range(end - first)))
    try:
        part.validate(full=True)
    except pa.ArrowInvalid:
        if end - first == 1:
            yield first
        else:
            middle = (first + end) // 2
            yield from _invalid(column, first, middle)
            yield from _invalid(column, middle, end)


def _put(layout: Layout, found: list[tuple[object, ...]], task: int, chunk: int) -> StagedFile:
    columns = [list(values) for values in zip(*found, strict=True)]
    table = pa.table(
        [pa.array(c, kind.type) for c, kind in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )
    path, _, whole = layout.put(REJECTED_SEGMENT, task, chunk, table, dictionary=["reason"])
    ranks = columns[-1]
    return StagedFile(
        REJECTED_SEGMENT,
        path,
        len(found),
        whole.size,
        min(ranks),
        max(ranks),
    )
