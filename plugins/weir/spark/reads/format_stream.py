"""The streaming reader of the format `weir` that keeps its position in the query's checkpoint."""

import json
from collections.abc import Sequence
from datetime import datetime

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType
from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import StreamRow, read_stream
from weir.controller.missing import missing_after, truncated_after
from weir.controller.queries import Cut, segments_between, stream_cut_at, stream_info
from weir.controller.read_plan import readable
from weir.model.bounds import Bound
from weir.model.stream_cut import meet
from weir.reader_groups.batches.budget import Budget, fit
from weir.spark.failures.workers import says_why
from weir.spark.reads.format_options import EVERYTHING, Limits
from weir.spark.reads.format_parts import (
    PartReader,
    closed,
    cut_of,
    parts_of,
    say_missing,
    slices_between,
)
from weir.spark.reads.format_source import StreamSource

_STEPS = 1000  # the most ends of segments that are passed at once
# From the query's position, which is valid. If events after it were truncated, planning says so.
_NEXT = text("SELECT next_cut(CAST(:s AS bigint), CAST(:cut AS jsonb), CAST(:n AS bigint))")
_UP_TO = text(
    """SELECT meet_cuts(:s, ARRAY[CAST(:end AS jsonb),
        join_cuts(:s, CAST(:cut AS jsonb), stream_cut_at(:name, clock_time(:clock)))])"""
)
_BETWEEN = text(
    """SELECT b.events - a.events FROM size_till(CAST(:s AS bigint), CAST(:cut AS jsonb)) a,
        size_till(CAST(:s AS bigint), CAST(:further AS jsonb)) b"""
)


class StreamReader(PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader whose offsets are stream cuts."""

    def __init__(self, source: StreamSource, schema: StructType) -> None:
        super().__init__(source, schema)
        self._last: Cut | None = None  # where the query ends; None: it never ends

    @says_why
    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end at the present tail, or before."""
        self._last = self._end() or self._ends("tail")

    def _end(self) -> Cut | None:
        """Return the cut at the time `until` (once it is known, the same); None if there is no such
        time."""
        if self._last is None and self.source.span.until is not None:
            self._last = self._at(self.source.span.until)
        return self._last

    def _at(self, time: datetime) -> Cut:
        source = self.source
        closed(source)
        return dict(source.ask(lambda c: stream_cut_at(c, source.stream, time)))

    def _ends(self, which: str) -> Cut:
        info = self.source.ask(lambda c: stream_info(c, self.source.stream))
        return dict(getattr(info, which))

    @says_why
    def initialOffset(self) -> Cut:
        if self.source.span.since is not None:
            first = self._at(self.source.span.since)
            self.source.ask(lambda c: say_missing(c, self.source, self.source.span, empty=False))
            return first
        start = self.source.options.get("start", "head")
        if start in ("head", "tail"):
            return self._ends(start)
        return dict(cut_of(start) or {})

    def getDefaultReadLimit(self) -> ReadLimit:
        # One of them, because Spark knows no limit of several kinds: `latestOffset` knows all.
        limits = self.source.limits
        if limits.events:
            return ReadMaxRows(limits.events)
        if limits.bytes:
            return ReadMaxBytes(limits.bytes)
        return ReadMaxFiles(limits.files) if limits.files else ReadAllAvailable()

    def reportLatestOffset(self) -> Cut:
        return self._ends("tail")

    @says_why
    def latestOffset(self, start: Cut, limit: ReadLimit) -> Cut:
        last, limits = self._end(), self.source.limits
        if isinstance(limit, ReadAllAvailable) or not any(limits):
            return last or self._ends("tail")
        stream = self.source.stream

        def next_(connection: Connection) -> Cut:
            row = read_stream(connection, stream)
            cut: Cut = start
            if self.source.on_gap == "skip":
                cut = readable(connection, row.stream_id, start, None)[0] or start
            else:  # with the count of all that is gone, not of this micro-batch alone
                lacks = missing_after(connection, row.stream_id, start, last)
                if lacks is not None:
                    raise truncated_after(lacks, start, row.head)
            end = last
            if limits.bytes or limits.files:
                end = _within(
                    connection, row, cut, last or dict(stream_info(connection, stream).tail), limits
                )
            if limits.events:
                return _further(connection, row.stream_id, cut, end, limits.events)
            return cut if end is None else end

        return dict(self.source.ask(next_))

    @says_why
    def partitions(self, start: Cut, end: Cut) -> Sequence[InputPartition]:
        return parts_of(slices_between(self.source, start, end))

    def commit(self, end: Cut) -> None:
        """Do nothing, because the position is in the query's own checkpoint."""


def _within(connection: Connection, stream: StreamRow, cut: Cut, end: Cut, limits: Limits) -> Cut:
    """Return the cut up to which so many bytes or files lie after another. Commits stay whole."""
    rows = segments_between(connection, stream.name, cut, end)
    bounds = [
        Bound(stream.stream_id, row.segment_id, row.from_offset, row.to_offset, completes=False)
        for row in rows
    ]
    budget = Budget(EVERYTHING, limits.bytes or EVERYTHING, limits.files or EVERYTHING)
    clock = fit(connection, bounds, budget, "commit").clock
    if clock is None:
        return end
    given = {"s": stream.stream_id, "name": str(stream.name), "clock": clock}
    given |= {"cut": json.dumps(cut), "end": json.dumps(end)}
    return dict(connection.execute(_UP_TO, given).scalar_one())


def _further(connection: Connection, stream_id: int, cut: Cut, end: Cut | None, most: int) -> Cut:
    """Return the cut about `most` events after another, or `end` if that comes before."""
    events = 0
    for _ in range(_STEPS):  # each step goes to the next end of a segment
        given = {"s": stream_id, "cut": json.dumps(cut), "n": most - events}
        further: Cut = connection.execute(_NEXT, given).scalar_one()
        if end is not None:
            further = meet(load_cuts(connection, stream_id, further, end)).to_json()
        given["further"] = json.dumps(further)
        events += connection.execute(_BETWEEN, given).scalar_one()
        if further == cut or events >= most:
            return further
        cut = further
    return cut
