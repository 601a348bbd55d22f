"""Staging without a JVM: route the rows of tables, and write them to files of an attempt.

A `Layout` says all that this takes, and knows no database: a program uses it at once, and the
format `weir` sends it to Spark's workers, each of which writes its own rows.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.errors import BadRows, InvalidInput
from weir.front_ends import do
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.event_time import (
    TimeColumn,
    check_type,
    count_late,
    missing_column,
    range_of,
    times_of,
)
from weir.kernel.row_hash import hashes_of_longs, hashes_of_texts, sum_of_hashes
from weir.kernel.schema import absent, cast_column, from_arrow, to_arrow, to_read
from weir.model.digest import hash_of
from weir.model.erased_keys import refusal
from weir.model.event_time import UNITS, EventTimes
from weir.model.key_space import STEPS
from weir.model.new_columns import Fitting, fitting, lacking_defaults
from weir.model.plain_column import plain_column
from weir.model.schema import SEQ, Field, show, stored_name
from weir.model.segment import Segment
from weir.warehouse.filesystem import filesystem, make_folder
from weir.warehouse.footer import begin_of_end
from weir.warehouse.marker import check_unused
from weir.warehouse.paths import SEGMENT, TASK

ROWS_PER_FILE = 1_000_000  # of a segment; more rows get more files
# Bytes, a sixteenth of the default: looking up each value in a large dictionary costs most of a
# write.
DICTIONARY = 1 << 16
THREADS = 16  # that write files at the same time
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

    @classmethod
    def of(
        cls, warehouse: str, attempt: Attempt, columns: list[Field], instead: str = _WITH_SPARK
    ) -> "Layout":
        """Return how rows of `columns` are written. Raises InvalidInput for columns that do not fit
        the stream, and for what needs Spark's JVM; `instead`: what to do then.
        """
        check_unused(warehouse, attempt.folder)
        fit = fitting(
            str(attempt.stream), attempt.fields, columns, attempt.on_new_column, attempt.dropped
        )
        names = {one["name"] for one in columns}
        schema = to_arrow([one for one in fit.fields if one["name"] in names])
        key = _key_column(attempt, schema, columns, instead)
        found = cls(warehouse, attempt, columns, fit, key, schema=schema)
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

    def fitted(self, table: pa.Table) -> pa.Table:
        """Return a table of `columns` in the types and with all the columns of the files. Raises
        BadRows for a value that would change or be lost."""
        self._check_open(table)
        columns = [cast_column(table[one.name], one) for one in self.schema]
        rows = table.num_rows
        table = pa.table(columns, schema=self.schema)
        for column in self.added_defaults():
            table = table.append_column(column.remove_metadata(), absent(column, rows))
        return table

    def _check_open(self, table: pa.Table) -> None:
        """Raise BadRows for a value, such as an empty list, in a column whose type is left open."""
        for one in self.columns:
            name = one["name"]
            if name not in self.schema.names and table[name].null_count < table.num_rows:
                raise BadRows(
                    "bad_rows",
                    f"column {name!r} is {show(one['type'])}, in which the type of a part "
                    "is not known, so its values can't be kept; cast it, or append rows with "
                    "values of the part first.",
                )

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        """Return the routing keys of fitted rows."""
        if self.key is None:
            return pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
        return table[self.key]

    def _erased(self, keys: pa.ChunkedArray) -> int:
        """Return how many rows have a routing key that is refused because it was erased."""
        if (erased := self.attempt.erased) is None:
            return 0
        texts = keys.cast(pa.string())
        found = erased.among(texts.unique().drop_null().to_pylist())
        return pc.sum(pc.is_in(texts, value_set=pa.array(found, pa.string()))).as_py() or 0

    def write(self, table: pa.Table, ranks: pa.Array, task: int = 0, chunk: int = 0) -> Written:
        """Write fitted rows to a file for each segment, in their order. `ranks`: of the rows.
        `task`, `chunk`: name the files; no other rows of the attempt have both.
        """
        attempt, keys, late = self.attempt, self.keys(table), 0
        if erased := self._erased(keys):
            return Written(erased=erased)
        if self.time is not None:
            times = times_of(table[self.source])
            if attempt.complete_until is not None:
                late = pc.sum(pc.less(times, attempt.complete_until)).as_py() or 0
            if self.time.name == TIME:
                table = table.append_column(TIME, times.cast(pa.timestamp("us", "UTC")))
        # From here on columns have the names of the files.
        stored = {one["name"]: stored_name(one) for one in self.fit.fields}
        table = table.rename_columns([stored.get(name, name) for name in table.column_names])
        table = table.append_column(SEQ, ranks)
        segments = sorted(attempt.segments, key=lambda segment: segment.key_low)
        parts = [
            (segment, task * len(segments) + i, chunk + n, rows.slice(first, ROWS_PER_FILE))
            for i, (segment, rows) in enumerate(_by_segment(segments, keys, table))
            for n, first in enumerate(range(0, rows.num_rows, ROWS_PER_FILE))
        ]

        def write(part: tuple[Segment, int, int, pa.Table]) -> StagedFile:
            file = self._file(*part)
            if self.time is None:
                return file
            found = range_of(times_of(part[-1][self.time.name]))
            return replace(file, min_time=found.low, max_time=found.high, untimed=found.untimed)

        if len(parts) == 1:
            return Written((write(parts[0]),), late=late)
        # An object store takes long for one file, and no longer for many.
        with ThreadPoolExecutor(THREADS) as pool:
            return Written(tuple(pool.map(write, parts)), late=late)

    def _file(self, segment: Segment, task: int, chunk: int, rows: pa.Table) -> StagedFile:
        hashed = [name for name in rows.column_names if name not in (SEQ, TIME)]
        path, footer, whole = self.put(segment.segment_id, task, chunk, rows, dictionary=hashed)
        file_hash, begin = hash_of(whole), begin_of_end(footer, whole.size)
        ranks = rows[SEQ]
        return StagedFile(
            segment.segment_id, path, rows.num_rows, whole.size, ranks[0].as_py(),
            ranks[-1].as_py(), hashes=sum_of_hashes(rows, hashed),
            end_hash=hash_of(whole[begin:]) if begin else file_hash, file_hash=file_hash,
        )  # fmt: skip

    def put(
        self, segment_id: int, task: int, chunk: int, rows: pa.Table, dictionary: list[str]
    ) -> tuple[str, pq.FileMetaData, pa.Buffer]:
        """Write a file below the attempt's folder. Return its path below the warehouse, its footer
        and its bytes."""
        system, base = filesystem(self.warehouse)
        folder = f"{self.attempt.folder}{SEGMENT}={segment_id}/{TASK}={task}"
        path = f"{folder}/part-{uuid.uuid4().hex}.c{chunk:03}.parquet"
        make_folder(system, f"{base}/{folder}")
        # In memory first: the hash is of bytes as they were made, not as they were read again.
        made = pa.BufferOutputStream()
        footers: list[pq.FileMetaData] = []
        pq.write_table(
            rows, made, compression="snappy", use_dictionary=dictionary,
            dictionary_pagesize_limit=DICTIONARY, column_encoding={SEQ: "DELTA_BINARY_PACKED"},
            write_page_checksum=True,
            metadata_collector=footers,
        )  # fmt: skip
        whole = made.getvalue()
        with system.open_output_stream(f"{base}/{path}") as out:
            out.write(whole)
        return path, footers[0], whole

    def staged(self, written: Iterable[Written]) -> Staged:
        """Return what was written of all rows, ready to be committed. Raises BadRows if some have a
        routing key that was erased."""
        every, attempt = list(written), self.attempt
        if erased := sum(one.erased for one in every):
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


def stage_table(warehouse: str, attempt: Attempt, table: pa.Table) -> Staged:
    """Write the rows of each segment to files of its own, in the order of the table. Return what
    was written. Raises as `append_table`."""
    layout = Layout.of(warehouse, attempt, from_arrow(table.schema))
    layout.fit.announce()
    table = layout.fitted(table)
    keys = layout.keys(table)
    if keys.null_count and attempt.on_missing_key != "spread":
        raise BadRows(
            "bad_rows",
            f"{keys.null_count:,} of {len(keys):,} rows have no routing key "
            f"({attempt.routing_key}); fill it in, append with Spark, which can quarantine them, "
            "or to place them anywhere "
            f"{do('update_stream', stream=str(attempt.stream), on_missing_key='spread')}.",
        )
    return layout.staged([layout.write(table, pa.array(range(table.num_rows), pa.int64()))])


def _by_segment(
    segments: Sequence[Segment], keys: pa.ChunkedArray, table: pa.Table
) -> Iterator[tuple[Segment, pa.Table]]:
    """Yield segments, which are in the order of their key ranges, each with its rows (semantics
    1.6)."""
    if len(segments) == 1:
        yield segments[0], table
        return
    texts = keys.cast(pa.string()).combine_chunks()  # exactly as Spark casts them
    hashes = hashes_of_texts(texts)
    if texts.null_count:
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        hashes = np.where(missing, hashes_of_longs(table[SEQ].combine_chunks()), hashes)
    lows = [segment.key_low for segment in segments]
    places = (hashes >> np.uint64(11)).astype(np.float64) / STEPS
    found: Any = np.searchsorted(lows, places, side="right") - 1
    counts = np.bincount(found, minlength=len(segments))
    table = table.take(pa.array(np.argsort(found, kind="stable")))
    begin = 0
    for segment, count in zip(segments, counts.tolist(), strict=True):
        yield segment, table.slice(begin, count)
        begin += count


def _key_column(
    attempt: Attempt, given: pa.Schema, columns: list[Field], instead: str
) -> str | None:
    """Return the column of routing keys; None if no row can have one, as it has no type. Raises
    InvalidInput if there is none, or if Spark alone turns it into texts."""
    column = plain_column(attempt.routing_key)
    if column is None:
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key of stream {attempt.stream} is the expression "
            f"{attempt.routing_key!r}, which only Spark can compute; {instead}.",
        )
    names = {name.lower(): name for name in given.names}
    if column.lower() not in names:
        if column.lower() in (one["name"].lower() for one in columns):
            return None
        raise InvalidInput(
            "routing_key_column_missing",
            f"the routing key of stream {attempt.stream} is {column!r}, but the rows have no such "
            f"column (they have {', '.join(list(given.names)[:8])}); add it.",
        )
    kind = given.field(names[column.lower()]).type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
    ):
        raise InvalidInput(
            "routing_key_needs_spark",
            f"the routing key is {kind}, which only Spark can turn into text in the same way each "
            "time; append with Spark, or cast it to a string.",
        )
    return str(names[column.lower()])
