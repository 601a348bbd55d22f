"""Write rows: sort out those that are no events, and bring each event to the file of its segment.

Every door that appends calls this: a program in its own process, Spark in its tasks.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import BadRows
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import times_of
from weir.kernel.keys import unusable
from weir.kernel.rejected import (
    MALFORMED,
    SCHEMA,
    Mask,
    Ranks,
    RejectedFiles,
    marked,
    not_kept,
    with_failing_key,
    with_wrong_key,
    without_key,
)
from weir.kernel.row_hash import U64, hashes_of_longs, hashes_of_texts, row_hashes
from weir.kernel.schema import cast_column, from_arrow
from weir.kernel.segment_files import SegmentFiles
from weir.kernel.stage import GROUP_ROWS, Layout, Written
from weir.model.digest import is_hashed
from weir.model.key_space import STEPS
from weir.model.schema import SEQ, stored_name

Rejected = Callable[[Layout, pa.Table, pa.ChunkedArray, Ranks], pa.Table]
TASK_BITS = 33  # of a rank, for the row in its task
_SLAB = 32 << 20  # bytes of rows that are looked at together


class RowWriter:
    """Writes the rows of a task below the folder of an attempt. `task`: no other writer of the
    attempt has its number. `by_segment`: the rows come sorted by segment, so that few files are
    open."""

    def __init__(self, layout: Layout, task: int = 0, *, by_segment: bool = False) -> None:
        self._layout, self._by_segment = layout, by_segment
        fields = layout.fit.fields
        _, self._lows = layout.segments()
        self._files, self._rejected = SegmentFiles(layout, task), RejectedFiles(layout, task)
        self._stored = {one["name"]: stored_name(one) for one in fields}
        self._hashed = sorted(stored_name(one) for one in fields if is_hashed(one["type"]))
        self._key = layout.key_column
        self._late = self._erased = 0

    def add(self, table: pa.Table, ranks: Ranks) -> None:
        """Write rows, which follow those before. `ranks`: of the rows, ascending in each segment.
        They have the columns of the layout, and may have MALFORMED."""
        found = [SCHEMA.empty_table()]
        if MALFORMED in table.column_names:
            table, ranks = self._without(*marked(table, ranks), table, ranks, found)
        rows = self._as_in_files(table)
        if rows is None:  # one of them has a value that can't be kept
            names = [one["name"] for one in self._layout.columns]
            them = not_kept(self._layout, table.select(names), ranks)
            table, ranks = self._without(*them, table, ranks, found)
            rows = self._fitted(table)
        keys, failed = self._layout.key.texts(rows)
        sorts: list[tuple[Mask, Rejected]] = [(unusable(keys), with_wrong_key)]
        if failed is not None:
            sorts.insert(0, (failed.to_numpy(), with_failing_key))
        if self._layout.attempt.on_missing_key != "spread" and keys.null_count:
            sorts.append((keys.is_null().to_numpy(), without_key))
        lost = np.zeros(rows.num_rows, bool)
        for bad, rejected in sorts:
            if (bad := bad & ~lost).any():
                these = pa.array(bad)
                some = rows.filter(these), keys.filter(these), ranks[bad]
                found.append(rejected(self._layout, *some))
                lost |= bad
        if lost.any():
            kept = pa.array(~lost)
            rows, keys, ranks = rows.filter(kept), keys.filter(kept), ranks[~lost]
        if any(one.num_rows for one in found):
            self._rejected.add(pa.concat_tables(found))
        if rows.num_rows and not self._has_erased(keys):
            self._write(self._timed(rows), keys, ranks)

    def end(self) -> Written:
        """Return what was written, when all rows have come."""
        return Written(self._files.end(), self._rejected.end(), self._late, self._erased)

    def _without(
        self, bad: Mask, these: pa.Table, table: pa.Table, ranks: Ranks, found: list[pa.Table]
    ) -> tuple[pa.Table, Ranks]:
        if not these.num_rows:
            return table, ranks
        found.append(these)
        return table.filter(pa.array(~bad)), ranks[~bad]

    def _as_in_files(self, table: pa.Table) -> pa.Table | None:
        """Return rows as `_fitted` does; None if a value of them can't be kept."""
        for one in self._layout.columns:
            column = table[one["name"]]
            if one["name"] not in self._layout.schema.names and column.null_count < len(column):
                return None
        try:
            return self._fitted(table)
        except BadRows:
            return None

    def _fitted(self, table: pa.Table) -> pa.Table:
        """Return rows in the types and with all the columns of the files."""
        schema = self._layout.schema
        columns = [cast_column(table[one.name], one) for one in schema]
        return self._layout.with_defaults(pa.table(columns, schema=schema))

    def _has_erased(self, keys: pa.ChunkedArray) -> bool:
        """Count the rows with a routing key that is refused because it was erased."""
        if (erased := self._layout.attempt.erased) is None:
            return False
        found = erased.among(keys.unique().drop_null().to_pylist())
        if found:
            self._erased += pc.sum(pc.is_in(keys, value_set=pa.array(found, pa.string()))).as_py()
        return bool(found)

    def _timed(self, rows: pa.Table) -> pa.Table:
        """Return rows in the names of the files, with their event times where these have a column
        of their own; count those that are late."""
        layout, attempt = self._layout, self._layout.attempt
        times = None
        if layout.time is not None and layout.source is not None:
            written = layout.time.name == TIME
            if written or attempt.complete_until is not None:
                times = times_of(layout.source.over(rows).values)
            if attempt.complete_until is not None:
                self._late += pc.sum(pc.less(times, attempt.complete_until)).as_py() or 0
            times = times if written else None
        names = [self._stored.get(name, name) for name in rows.column_names]
        rows = rows.rename_columns(names)
        if times is None:
            return rows
        return rows.append_column(TIME, times.cast(pa.timestamp("us", "UTC")))

    def _write(self, rows: pa.Table, keys: pa.ChunkedArray, ranks: Ranks) -> None:
        rows = rows.append_column(SEQ, pa.array(ranks))
        [batch] = rows.combine_chunks().to_batches(max_chunksize=None)
        texts = keys.combine_chunks()
        of_keys = hashes_of_texts(texts) if len(self._lows) > 1 else None
        names = [name for name in self._hashed if name in batch.schema.names]
        known = {}
        key = self._stored.get(self._key or "")
        if of_keys is not None and key in names and pa.types.is_string(batch[key].type):
            known[key] = of_keys
        hashes = row_hashes(batch, names, known)
        if of_keys is None:
            self._files.add(0, batch, hashes)
            return
        if texts.null_count:  # the order is not promised: the rank decides
            missing = texts.is_null().to_numpy(zero_copy_only=False)
            of_keys = np.where(missing, hashes_of_longs(batch[SEQ]), of_keys)
        ordinals = ordinals_of(of_keys, self._lows)
        for ordinal in np.unique(ordinals).tolist():
            if self._by_segment:
                self._files.end_before(ordinal)
            these = np.flatnonzero(ordinals == ordinal)
            self._files.add(ordinal, batch.take(pa.array(these)), hashes[these])


def ordinals_of(hashes: U64, lows: list[float]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the segments of routing keys by the hashes of these (semantics 1.6). `lows`: where the
    ranges of the segments begin."""
    places = (hashes >> np.uint64(11)).astype(np.float64) / STEPS
    return (np.searchsorted(lows, places, side="right") - 1).astype(np.int32)


def slabs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of batches as tables that are written at once."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        most = max(1, min(GROUP_ROWS, _SLAB * batch.num_rows // max(1, batch.nbytes)))
        for first in range(0, batch.num_rows, most):
            part = batch.slice(first, most)
            kept.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
            if rows >= GROUP_ROWS or size >= _SLAB:
                yield pa.Table.from_batches(kept)
                kept, rows, size = [], 0, 0
    if kept:
        yield pa.Table.from_batches(kept)


def write_batches(
    layout: Layout,
    batches: Iterable[pa.RecordBatch],
    task: int = 0,
    *,
    by_segment: bool = False,
) -> Written:
    """Write the rows of a task. Their ranks are in column SEQ, or the order in which they come, of
    this task after those of lower numbers."""
    writer, rank = RowWriter(layout, task, by_segment=by_segment), task << TASK_BITS
    for table in slabs(batches):
        if SEQ in table.column_names:
            ranks = table[SEQ].to_numpy()
        else:
            ranks = np.arange(rank, rank + table.num_rows, dtype=np.int64)
            rank += table.num_rows
        writer.add(table, ranks)
    return writer.end()


def stage_table(warehouse: str, attempt: Attempt, table: pa.Table) -> Staged:
    """Write the rows of each segment to files of its own, in the order of the table. Return what
    was written. Raises as `append_table`."""
    layout = Layout.of(warehouse, attempt, from_arrow(table.schema))
    layout.fit.announce()
    return layout.staged([write_batches(layout, table.to_batches())])
