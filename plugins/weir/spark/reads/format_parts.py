"""What the readers of the format `weir` share: how they ask Postgres, divide files among tasks, and
read them in Spark's Python workers."""

import json
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType
from sqlalchemy import Connection

from weir.arrow.read import read_slice
from weir.controller.locks import read_stream
from weir.controller.missing import missing_after, missing_between, truncated
from weir.controller.queries import Cut
from weir.controller.read_plan import FileSlice, plan
from weir.controller.times import Span, close_span
from weir.database.connection import Database
from weir.errors import InvalidInput, Truncated, TruncatedWarning
from weir.model.schema import PLACES
from weir.spark.base.calls import for_workers
from weir.spark.reads.format_source import StreamSource
from weir.spark.reads.tasks import chains_of


class Part(InputPartition):
    """Slices of files that one task reads one after the other."""

    def __init__(self, slices: Sequence[FileSlice]) -> None:
        super().__init__(None)
        self.slices = list(slices)


def closed(source: StreamSource) -> Span:
    """Close the later time of the source's span, and return the span."""
    with Database.of(source.settings) as database:
        close_span(database, [source.stream], source.span)
    return source.span


def say_missing(connection: Connection, source: StreamSource, span: Span, *, empty: bool) -> None:
    """Warn how many events between two times were truncated. Raises Truncated if the source is to
    fail at a gap after the first."""
    lacks = missing_between(connection, source.stream, *span, empty=empty)
    if lacks is None:
        return
    if span.since is not None and source.on_gap == "fail":
        raise truncated(
            lacks, "they were committed after `since`; set onGap to skip to read what is left"
        )
    lacks.warn()


def _say_skipped(
    connection: Connection, source: StreamSource, start: Cut, end: Cut | datetime | None
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


def slices_between(
    source: StreamSource,
    start: Cut | datetime | None,
    end: Cut | datetime | None,
    *,
    by_time: bool = False,
) -> list[FileSlice]:
    """Return what is to be read. `by_time`: no cut was given, so what the answer lacks is said."""

    def found(connection: Connection) -> list[FileSlice]:
        span, first, last = source.span, start, end
        row = read_stream(connection, source.stream) if source.events else None
        if source.events and row and by_time:
            span = source.events.commits(connection, row, span)
            first, last = span.since or start, span.until or end
        slices, _ = plan(connection, source.stream, first, last, source.on_gap)
        if source.events and row:
            slices = source.events.files(connection, row.stream_id, slices)
        if by_time:
            say_missing(connection, source, span, empty=not slices)
        elif source.on_gap == "skip" and isinstance(start, dict):
            _say_skipped(connection, source, start, end)
        return slices

    return list(source.ask(found))


def parts_of(slices: Sequence[FileSlice]) -> list[InputPartition]:
    """Return a task for each key range, so that the events of each routing key are in order."""
    return [
        Part(sorted(chain, key=lambda s: (s.segment_id, s.start_offset)))
        for chain in chains_of(slices)
    ] or [Part([])]


class PartReader:
    """Reads parts in Spark's workers. These get the names of files, and no way to Postgres."""

    def __init__(self, source: StreamSource, schema: StructType) -> None:
        self.source = source
        self._names = schema.fieldNames()
        self._fields = source.columns(schema)
        self._match = source.match
        known = {*self._names, *PLACES}
        more = source.match.columns if source.match else ()
        self._fields += [one for one in source.fields if one["name"] in {*more} - known]
        self._settings = for_workers(source.settings)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("_names", "_fields", "_match", "_settings")}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a part."""
        assert isinstance(partition, Part)
        wanted = [field["name"] for field in self._fields]
        for part in partition.slices:
            rows = read_slice(self._settings, part, self._fields, wanted)
            rows = rows.filter(self._match.rows(rows)) if self._match else rows
            yield from rows.select(self._names).to_batches()


def cut_of(written: str, without: str = "") -> Cut | None:
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
