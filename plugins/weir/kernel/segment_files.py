"""The files of an attempt: those of its segments, with what its commit records of each."""

from collections.abc import Sequence

import pyarrow as pa

from weir.kernel.attempt import StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import range_of, times_of
from weir.kernel.files import Bounds, GroupedFiles, ParquetFile
from weir.kernel.row_hash import U64
from weir.kernel.stage import Layout
from weir.model.digest import signed
from weir.model.schema import SEQ
from weir.warehouse.paths import SEGMENT, TASK

_HASHES = "_weir_hashes"  # on the way: the hash of each row


def segment_file(
    layout: Layout, segment_id: int, task: int, chunk: int, schema: pa.Schema,
    plain: Sequence[str] = (), bounds: Bounds = True,
) -> ParquetFile:  # fmt: skip
    """Return a new file of a segment."""
    folder = f"{layout.attempt.folder}{SEGMENT}={segment_id}/{TASK}={task}/"
    return ParquetFile(layout.warehouse, folder, chunk, schema, plain, bounds)


class SegmentFiles:
    """Writes the rows that a task has of the segments of an attempt."""

    def __init__(self, layout: Layout, task: int) -> None:
        """`task`: no other writer of the attempt has its number."""
        self._layout, self._task = layout, task
        self._segments, _ = layout.segments()
        self._files: GroupedFiles[int, StagedFile] = GroupedFiles(
            self._opened, layout.group_rows, layout.file_rows
        )

    def add(self, ordinal: int, rows: pa.RecordBatch, hashes: U64) -> None:
        """Add rows of a segment, which follow those before. `hashes`: of each row."""
        self._files.add(ordinal, rows.append_column(_HASHES, pa.array(hashes)))

    def end_before(self, ordinal: int) -> None:
        """End the files of the segments before this one, of which no rows come any more."""
        self._files.end_before(ordinal)

    def end(self) -> tuple[StagedFile, ...]:
        """Write what waits, and return all files."""
        return self._files.end()

    def _opened(self, ordinal: int, chunk: int, schema: pa.Schema, bounds: Bounds) -> "_Open":
        segments, layout = self._segments, self._layout
        task, own = self._task * len(segments) + ordinal, schema.remove(len(schema) - 1)
        if not isinstance(bounds, bool):
            bounds = [name for name in bounds if name != _HASHES]
        file = segment_file(layout, segments[ordinal], task, chunk, own, (TIME,), bounds)
        return _Open(file, segments[ordinal], layout)


class _Open:
    """A file that a segment is writing, and what is known of its rows."""

    def __init__(self, file: ParquetFile, segment_id: int, layout: Layout) -> None:
        self._file, self._segment_id, self._time = file, segment_id, layout.time
        self._events = self._first = self._last = self._hashes = self._untimed = 0
        self._low: int | None = None
        self._high: int | None = None

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group."""
        hashes = rows[_HASHES].to_numpy()
        rows = rows.drop_columns([_HASHES])
        self._file.write(rows)
        ranks = rows[SEQ]
        if not self._events:
            self._first = ranks[0].as_py()
        self._last = ranks[-1].as_py()
        self._events += rows.num_rows
        self._hashes = signed(self._hashes + int(hashes.sum()))
        if self._time is not None:
            found = range_of(times_of(rows[self._time.name]))
            ends = [one for one in (self._low, self._high, found.low, found.high)
                    if one is not None]  # fmt: skip
            self._low, self._high = min(ends, default=None), max(ends, default=None)
            self._untimed += found.untimed

    def end(self) -> StagedFile:
        """End the file, and return what to say of it."""
        size, end_hash, file_hash = self._file.end()
        return StagedFile(
            self._segment_id, self._file.path, self._events, size, self._first, self._last,
            self._low, self._high, self._untimed, self._hashes, end_hash, file_hash,
        )  # fmt: skip
