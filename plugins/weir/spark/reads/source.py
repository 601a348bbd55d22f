"""`spark.read.format("weir")` and `spark.readStream.format("weir")`: the convenient way to read.

This is a Python data source. Its rows pass through Python workers, so it is several times slower
than `weir.spark.reads.native`. A streaming query keeps its position in its own checkpoint, and does
not hold retention back as a reader group does.
"""

import json
import os
import re
import warnings
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import LongType, StructField, StructType
from sqlalchemy import Connection, text

from weir.arrow.read import read_slice
from weir.controller import queries
from weir.controller.cuts import load_cuts
from weir.controller.locks import read_stream
from weir.controller.missing import missing_after, missing_between, truncated, truncated_after
from weir.controller.queries import Cut
from weir.controller.read_plan import FileSlice, plan, readable
from weir.controller.streams import schema_by_id
from weir.controller.times import Span, close_span, parse_span
from weir.database.connection import Database
from weir.errors import InvalidInput, Truncated, TruncatedWarning, check_choice
from weir.model.group_configuration import ON_GAP
from weir.model.names import StreamName, stream_name
from weir.model.schema import PLACES, Field, without_metadata
from weir.model.stream_cut import meet
from weir.settings import Settings, load
from weir.spark.appends.format_writer import batch_writer, stream_writer
from weir.spark.failures.workers import says_why as _says_why
from weir.spark.reads.tasks import chains_of

_STEPS = 1000  # the most ends of segments that are passed at once
# From the query's position, which is valid. If events after it were truncated, planning says so.
_NEXT = text("SELECT next_cut(CAST(:s AS bigint), CAST(:cut AS jsonb), CAST(:n AS bigint))")
_BETWEEN = text(
    """SELECT b.events - a.events FROM size_till(CAST(:s AS bigint), CAST(:cut AS jsonb)) a,
        size_till(CAST(:s AS bigint), CAST(:further AS jsonb)) b"""
)


def register(spark: SparkSession) -> None:
    """Register the format `weir` in a session."""
    spark.dataSource.register(WeirSource)


class WeirSource(DataSource):
    """The data source for `load("scope/stream")`.

    Options: `start` and `end` are stream cuts in JSON, by default head and tail; for a streaming
    query, `start` may be `tail`. In their place, `since` and `until` are times; a streaming query
    ends at `until`. `onGap` is `fail` (default), or `skip` to continue after events that were
    truncated before they were read, also those after `since`; `weir.TruncatedWarning` then says how
    many are missing, and says it of a batch without a start that is empty because of it.
    `maxEventsPerTrigger` limits a micro-batch. `config` is the path of a weir.toml, if WEIR_CONFIG
    does not name it for Spark's workers.
    """

    @_says_why
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._sent = False
        given = options.get("path") or options.get("stream") or ""
        self.stream: StreamName = stream_name(given)
        self.on_gap: str = options.get("onGap", "fail")
        check_choice("onGap", self.on_gap, ON_GAP)
        # A string, because all of Spark's options are.
        self.most = options.get("maxEventsPerTrigger")
        if self.most is not None and not re.fullmatch(r"0*[1-9][0-9]{0,17}", self.most):
            raise InvalidInput(
                "argument_invalid",
                f"maxEventsPerTrigger is {self.most!r}; it must be a whole number, 1 or more.",
            )
        self.span = parse_span(options.get("since"), options.get("until"))
        self.span.check_alone(options.get("start"), options.get("end"))
        config = options.get("config")
        self.settings = load({**os.environ, "WEIR_CONFIG": config} if config else None)
        # Once, as Spark sends this object on: a query keeps the columns that it began with.
        self._fields: list[Field] = _ask(
            self.settings, lambda c: schema_by_id(c, read_stream(c, self.stream).stream_id)
        )

    @classmethod
    def name(cls) -> str:
        return "weir"

    def schema(self) -> StructType:
        struct = StructType.fromJson({"type": "struct", "fields": without_metadata(self._fields)})
        return StructType([*struct.fields, *(StructField(name, LongType()) for name in PLACES)])

    def columns(self, schema: StructType) -> list[Field]:
        """Return the columns of a query's schema, with their names in files and their defaults,
        which Spark's schema does not have. Raises InvalidInput for one that the stream lacks."""
        known = {field["name"]: field for field in self._fields}
        found = []
        for field in schema.jsonValue()["fields"]:
            name = field["name"]
            if name in known:
                found.append({**known[name], "type": field["type"]})
            elif name not in PLACES:
                raise InvalidInput(
                    "column_unknown",
                    f"stream {self.stream} has no column {name!r}; choose among its columns: "
                    f"{', '.join(known)}.",
                )
        return found

    def reader(self, schema: StructType) -> "DataSourceReader":
        return _Reader(self, schema)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        return _StreamReader(self, schema)

    @_says_why
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.stream, self.settings, self.options, schema, overwrite=overwrite)

    @_says_why
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return stream_writer(
            self.stream, self.settings, self.options, schema, overwrite=overwrite,
            begins=not self._sent,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        # Spark makes a source to plan a micro-batch, and sends one to a process that commits it.
        return {**self.__dict__, "_sent": True}


class _Part(InputPartition):
    """Slices of files that one task reads one after the other."""

    def __init__(self, slices: Sequence[FileSlice]) -> None:
        super().__init__(None)
        self.slices = list(slices)


class _Reader(DataSourceReader):
    def __init__(self, source: WeirSource, schema: StructType) -> None:
        self._source, self._fields = source, source.columns(schema)

    @_says_why
    def partitions(self) -> Sequence[InputPartition]:
        options = self._source.options
        span = _closed(self._source)
        start = span.since or _cut(options.get("start", "head"), "head")
        end = span.until or _cut(options.get("end", "tail"), "tail")
        by_time = "start" not in options and "end" not in options
        return _parts(self._source, start, end, by_time=by_time)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self._source.settings, self._fields, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader whose offsets are stream cuts."""

    def __init__(self, source: WeirSource, schema: StructType) -> None:
        self._source, self._fields = source, source.columns(schema)
        self._last: Cut | None = None  # where the query ends; None: it never ends

    @_says_why
    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end at the present tail, or before."""
        self._last = self._end() or self._ends("tail")

    def _end(self) -> Cut | None:
        """Return the cut at the time `until` (once it is known, the same); None if there is no such
        time."""
        if self._last is None and self._source.span.until is not None:
            self._last = self._at(self._source.span.until)
        return self._last

    def _at(self, time: datetime) -> Cut:
        source = self._source
        _closed(source)
        return dict(_ask(source.settings, lambda c: queries.stream_cut_at(c, source.stream, time)))

    def _ends(self, which: str) -> Cut:
        info = _ask(self._source.settings, lambda c: queries.stream_info(c, self._source.stream))
        return dict(getattr(info, which))

    @_says_why
    def initialOffset(self) -> dict[str, Any]:
        if self._source.span.since is not None:
            first = self._at(self._source.span.since)
            _ask(self._source.settings, lambda c: _say_missing(c, self._source, empty=False))
            return first
        start = self._source.options.get("start", "head")
        if start in ("head", "tail"):
            return self._ends(start)
        return dict(_cut(start) or {})

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(int(self._source.most)) if self._source.most else ReadAllAvailable()

    @_says_why
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        last = self._end()
        if not isinstance(limit, ReadMaxRows):
            return last or self._ends("tail")
        stream = self._source.stream

        def next_(connection: Connection) -> Cut:
            row = read_stream(connection, stream)
            stream_id = row.stream_id
            cut: Cut = start
            if self._source.on_gap == "skip":
                cut = readable(connection, stream_id, start, None)[0] or start
            else:  # with the count of all that is gone, not of this micro-batch alone
                lacks = missing_after(connection, stream_id, start, last)
                if lacks is not None:
                    raise truncated_after(lacks, start, row.head)
            events = 0
            for _ in range(_STEPS):  # each step goes to the next end of a segment
                given = {"s": stream_id, "cut": json.dumps(cut), "n": limit.max_rows - events}
                further: Cut = connection.execute(_NEXT, given).scalar_one()
                if last is not None:
                    further = meet(load_cuts(connection, stream_id, further, last)).to_json()
                given["further"] = json.dumps(further)
                events += connection.execute(_BETWEEN, given).scalar_one()
                if further == cut or events >= limit.max_rows:
                    return further
                cut = further
            return cut

        return dict(_ask(self._source.settings, next_))

    @_says_why
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _parts(self._source, start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _batches(self._source.settings, self._fields, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing, because the position is in the query's own checkpoint."""


def _closed(source: WeirSource) -> Span:
    """Close the later time of the source's span, and return the span."""
    with Database.of(source.settings) as database:
        close_span(database, [source.stream], source.span)
    return source.span


def _say_missing(connection: Connection, source: WeirSource, *, empty: bool) -> None:
    """Warn how many events between the source's times were truncated. Raises Truncated if the
    source is to fail at a gap after `since`."""
    lacks = missing_between(connection, source.stream, *source.span, empty=empty)
    if lacks is None:
        return
    if source.span.since is not None and source.on_gap == "fail":
        raise truncated(
            lacks, "they were committed after `since`; set onGap to skip to read what is left"
        )
    lacks.warn()


def _say_skipped(
    connection: Connection, source: WeirSource, start: Cut, end: Cut | datetime | None
) -> None:
    """Warn how many events after a cut were truncated."""
    stream_id = read_stream(connection, source.stream).stream_id
    try:
        lacks = missing_after(connection, stream_id, start, end)
    except Truncated as error:  # the metadata of the cut was pruned
        warnings.warn(TruncatedWarning(error.sentence), stacklevel=2)
    else:
        if lacks is not None:
            lacks.warn()


def _parts(
    source: WeirSource,
    start: Cut | datetime | None,
    end: Cut | datetime | None,
    *,
    by_time: bool = False,
) -> list[InputPartition]:
    """Return a task for each key range, so that the events of each routing key are in order.

    `by_time`: no cut was given, so what the answer lacks is said.
    """

    def found(connection: Connection) -> list[FileSlice]:
        slices, _ = plan(connection, source.stream, start, end, source.on_gap)
        if by_time:
            _say_missing(connection, source, empty=not slices)
        elif source.on_gap == "skip" and isinstance(start, dict):
            _say_skipped(connection, source, start, end)
        return slices

    return [
        _Part(sorted(chain, key=lambda s: (s.segment_id, s.start_offset)))
        for chain in chains_of(_ask(source.settings, found))
    ] or [_Part([])]


def _batches(
    settings: Settings, fields: list[Field], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, _Part)
    wanted = [field["name"] for field in fields]
    for part in partition.slices:
        yield from read_slice(settings, part, fields, wanted).to_batches()


def _cut(written: str, without: str = "") -> Cut | None:
    """Return the stream cut that is written, or None for the word `without`."""
    if written == without:
        return None
    try:
        value = json.loads(written)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(
            "cut_invalid",
            f'{written!r} is not a stream cut; write JSON such as {{"0.0": 12, "1.0": 7}}.',
        )
    return value


def _ask(settings: Settings, question: Any) -> Any:
    with Database.of(settings) as database:
        return database.snapshot(question)
