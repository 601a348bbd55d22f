"""How the rows of an attempt become files: their columns, routing keys and event times.

A `Layout` says all that this takes, and knows no database: a program uses it at once, and Spark's
workers get it, each of which writes its own rows (`weir.kernel.writer`).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from weir.errors import InvalidInput
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import TimeColumn, check_type, count_late, missing_column
from weir.kernel.schema import absent, to_arrow, to_read
from weir.model.erased_keys import refusal
from weir.model.event_time import UNITS, EventTimes
from weir.model.new_columns import Fitting, fitting, lacking_defaults
from weir.model.plain_column import plain_column
from weir.model.schema import Field, show, stored_name
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import check_unused

ROWS_PER_FILE = 1_000_000  # of a segment; more rows get more files
GROUP_ROWS = 1 << 17  # of a row group
# Types, in Spark's JSON form, that Arrow turns into the same text as Spark each time.
KEY_TYPES = ("string", "byte", "short", "integer", "long", "boolean", "date")
KEY = "_weir_key"  # on the way: a routing key as text that was computed before
_WITH_SPARK = "append with Spark (`pip install 'weir-streams[spark]'`)"


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

    `columns`: those that the rows have. `key`: the column of the routing key; None if it has no
    value, and so no type. `source`: the column with the event times; `time`: that of the files
    that tells them. Both are None if the stream has none.
    """

    warehouse: str
    attempt: Attempt
    columns: list[Field]
    fit: Fitting
    key: str | None
    source: str | None = None
    time: TimeColumn | None = None
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    file_rows: int = ROWS_PER_FILE
    group_rows: int = GROUP_ROWS

    @classmethod
    def of(
        cls,
        warehouse: str,
        attempt: Attempt,
        columns: list[Field],
        instead: str = _WITH_SPARK,
        computed: Collection[str] = (),
    ) -> "Layout":
        """Return how rows of `columns` are written. `computed`: KEY if the rows come with their
        routing keys as texts in a column of that name, and TIME with their event times.

        Raises InvalidInput for columns that do not fit the stream, and for what needs Spark's JVM;
        `instead`: what to do then.
        """
        check_unused(warehouse, attempt.folder)
        fit = fitting(
            str(attempt.stream), attempt.fields, columns, attempt.on_new_column, attempt.dropped
        )
        names = {one["name"] for one in columns}
        schema = to_arrow([one for one in fit.fields if one["name"] in names])
        key: str | None = KEY
        if KEY not in computed:
            there = [one for one in fit.fields if one["name"] in names or "default" in one]
            key = _key_column(attempt, there, columns, instead)
        found = cls(
            warehouse, attempt, columns, fit, key, schema=schema, file_rows=ROWS_PER_FILE,
            group_rows=GROUP_ROWS,
        )  # fmt: skip
        if TIME in computed:
            return replace(found, source=TIME, time=TimeColumn(TIME, 1))
        return found if attempt.event_time is None else found._timed(instead)

    def _timed(self, instead: str) -> "Layout":
        attempt = self.attempt
        assert attempt.event_time is not None
        column = plain_column(attempt.event_time)
        if column is None:
            raise InvalidInput(
                "event_time_needs_spark",
                f"the event time of stream {attempt.stream} is the expression "
                f"{attempt.event_time!r}, which only Spark can compute; {instead}.",
            )
        given = [*self.schema.names, *self.added_defaults().names]
        names = {name.lower(): name for name in given}
        if column.lower() not in names:
            raise missing_column(attempt.stream, attempt.event_time, column, given)
        name = names[column.lower()]
        [of] = [one for one in self.fit.fields if one["name"] == name]
        kind = of["type"]
        check_type(attempt.stream, attempt.event_time, kind)
        unit = UNITS.get(kind) if isinstance(kind, str) else None
        where = TimeColumn(TIME, 1) if unit is None else TimeColumn(stored_name(of), unit)
        return replace(self, source=name, time=where)

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


def _key_column(
    attempt: Attempt, given: list[Field], columns: list[Field], instead: str
) -> str | None:
    """Return the column of routing keys among those of the files; None if no row can have one, as
    it has no type. Raises InvalidInput if there is none, or if Spark alone turns it into texts."""
    column = plain_column(attempt.routing_key)
    if column is None:
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key of stream {attempt.stream} is the expression "
            f"{attempt.routing_key!r}, which only Spark can compute; {instead}.",
        )
    found = [one for one in given if one["name"].lower() == column.lower()]
    if not found:
        names = [one["name"] for one in columns]
        if column.lower() in (name.lower() for name in names):
            return None
        raise InvalidInput(
            "routing_key_column_missing",
            f"the routing key of stream {attempt.stream} is {attempt.routing_key!r}, but the rows "
            f"have no column {column!r} (they have {', '.join(names[:8])}); add it.",
        )
    if found[0]["type"] not in KEY_TYPES:
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key is {show(found[0]['type'])}, which only Spark can turn into text in "
            "the same way each time; append with Spark, or cast it to a string.",
        )
    return str(found[0]["name"])
