"""How the rows of an attempt become files: their columns, routing keys and event times.

A `Layout` says all that this takes, and knows no database: a program uses it at once, and Spark's
workers get it, each of which writes its own rows (`weir.kernel.writer`).
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from weir.errors import InvalidInput
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import TimeColumn, check_type, count_late, missing_column
from weir.kernel.schema import absent, to_arrow, to_read
from weir.kernel.transforms import Computation
from weir.model.erased_keys import refusal
from weir.model.event_time import UNITS, EventTimes
from weir.model.new_columns import Fitting, fitting, lacking_defaults
from weir.model.schema import Field, stored_name
from weir.model.transforms import value_of
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import check_unused

ROWS_PER_FILE = 1_000_000  # of a segment; more rows get more files
GROUP_ROWS = 1 << 17  # of a row group


@dataclass(frozen=True)
class Written:
    """What was written of some rows: files, and how many of their events are late. `erased`: how
    many have a routing key that was erased; then none of the rows was written."""

    files: tuple[StagedFile, ...] = ()
    rejected: tuple[StagedFile, ...] = ()
    late: int = 0
    erased: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(
            self.files + other.files, self.rejected + other.rejected, self.late + other.late,
            self.erased + other.erased,
        )  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How the rows of an attempt become files. Processes may send it to each other.

    `columns`: those that the rows have. `key`: what computes their routing keys. `source`: what
    computes their event times; `time`: the column of the files that tells them. Both are None if
    the stream has none.
    """

    warehouse: str
    attempt: Attempt
    columns: list[Field]
    fit: Fitting
    key: Computation
    source: Computation | None = None
    time: TimeColumn | None = None
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    file_rows: int = ROWS_PER_FILE
    group_rows: int = GROUP_ROWS

    @classmethod
    def of(cls, warehouse: str, attempt: Attempt, columns: list[Field]) -> "Layout":
        """Return how rows of `columns` are written.

        Raises InvalidInput for columns that do not fit the stream, and for a routing key or an
        event time that can't be computed of them.
        """
        check_unused(warehouse, attempt.folder)
        fit = fitting(
            str(attempt.stream), attempt.fields, columns, attempt.on_new_column, attempt.dropped
        )
        names = {one["name"] for one in columns}
        schema = to_arrow([one for one in fit.fields if one["name"] in names])
        there = pa.schema([*schema, *to_read(lacking_defaults(fit.fields, columns))])
        found = cls(
            warehouse, attempt, columns, fit, _key_of(attempt, there, columns), schema=schema,
            file_rows=ROWS_PER_FILE, group_rows=GROUP_ROWS,
        )  # fmt: skip
        return found if attempt.event_time is None else found._timed(attempt.event_time, there)

    def _timed(self, text: str, there: pa.Schema) -> "Layout":
        stream = self.attempt.stream
        what = f"event time of stream {stream},"
        transform = value_of(text, what)
        names = {name.lower() for name in there.names}
        for name in transform.columns:
            if name.lower() not in names:
                raise missing_column(stream, text, name, there.names)
        source = Computation.of(transform, there, what)
        check_type(stream, text, kind := source.kind)
        time, plain = TimeColumn(TIME, 1), transform.plain
        if plain and isinstance(kind, str) and kind in UNITS:
            [of] = [one for one in self.fit.fields if one["name"].lower() == plain.lower()]
            time = TimeColumn(stored_name(of), UNITS[kind])
        return replace(self, source=source, time=time)

    @property
    def key_column(self) -> str | None:
        """The column of the files that is the routing key, if it is no more than a column."""
        plain = (self.key.transform.plain or "").lower()
        there = [*self.schema.names, *self.added_defaults().names]
        return next((name for name in there if name.lower() == plain), None)

    def added_defaults(self) -> pa.Schema:
        """Return the columns that files have although the rows lack them: those with a default."""
        return to_read(lacking_defaults(self.fit.fields, self.columns))

    def segments(self) -> tuple[list[int], list[float]]:
        """Return the segments by their key ranges, and where each range begins."""
        by_range = sorted(self.attempt.segments, key=lambda segment: segment.key_low)
        return [one.segment_id for one in by_range], [one.key_low for one in by_range]

    def with_defaults(self, table: pa.Table) -> pa.Table:
        """Return rows with the columns that have a default, and that they lack."""
        for column in self.added_defaults():
            table = table.append_column(column.remove_metadata(), absent(column, table.num_rows))
        return table

    def staged(self, written: Iterable[Written]) -> Staged:
        """Return what was written of all rows, ready to be committed. Raises BadRows if some have a
        routing key that was erased; then it deletes what was written."""
        every, attempt = list(written), self.attempt
        if erased := sum(one.erased for one in every):
            system, base = filesystem(self.warehouse)
            with suppress(OSError):  # what stays is garbage, as of each append that fails
                system.delete_dir(f"{base}/{attempt.folder}".rstrip("/"))
            raise refusal(attempt.stream, attempt.routing_key, erased)
        files = tuple(file for one in every for file in one.files)
        found = Staged(
            attempt, files, self.fit.fields, tuple(file for one in every for file in one.rejected),
            added=self.fit.added, missing=self.fit.missing,
        )  # fmt: skip
        if self.time is None:
            return found
        late = sum(one.late for one in every)
        return replace(
            found, times=EventTimes(str(attempt.event_time), late, attempt.complete_until),
            count_late=partial(count_late, self.warehouse, files, self.time),
        )  # fmt: skip


def _key_of(attempt: Attempt, there: pa.Schema, columns: list[Field]) -> Computation:
    """Return what computes routing keys. `there`: the columns of the files. Those of the rows that
    have no type yet, as they have no value, are null. Raises InvalidInput if it can't."""
    what = f"routing key of stream {attempt.stream},"
    transform = value_of(attempt.routing_key, what)
    names = [one["name"] for one in columns]
    known = {name.lower() for name in there.names}
    left_open = [name for name in names if name.lower() not in known]
    given = pa.schema([*there, *(pa.field(name, pa.null()) for name in left_open)])
    known |= {name.lower() for name in left_open}
    for name in transform.columns:
        if name.lower() not in known:
            raise InvalidInput(
                "column_missing",
                f"the routing key of stream {attempt.stream} is {attempt.routing_key!r}, but the "
                f"rows have no column {name!r} (they have {', '.join(names[:8])}); add it.",
            )
    return Computation.of_key(transform, given, what)
