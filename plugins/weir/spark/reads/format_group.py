"""The streaming reader of the format `weir` that is a reader of a group."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.errors import TruncatedWarning
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.read_plan import plan_batch
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.batches.streaming_query import StreamingQuery
from weir.reader_groups.group_streams import group_tails
from weir.spark.failures.workers import says_why
from weir.spark.reads.format_options import EVERYTHING
from weir.spark.reads.format_parts import PartReader, parts_of
from weir.spark.reads.format_source import StreamSource


class GroupReader(PartReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming reader whose offsets are batches of a reader group: its checkpoint has the reader
    and the number of the batch, Postgres has what the batch reads."""

    def __init__(self, source: StreamSource, schema: StructType) -> None:
        super().__init__(source, schema)
        assert source.group is not None
        self._group = source.group
        self._lease = source.settings.reader_lease
        self._database = Database.of(source.settings)  # this process is the query's own
        self._query: StreamingQuery | None = None
        self._until: dict[int, Cut] | None = None  # where the query ends; None: nowhere
        self._new = f"spark-{uuid4().hex[:16]}"

    @says_why
    def prepareForTriggerAvailableNow(self) -> None:
        """Let the query end at the present tail."""
        self._until = self._tails()

    def _tails(self) -> dict[int, Cut]:
        return self._database.snapshot(lambda c: group_tails(c, self._group.name))

    def initialOffset(self) -> Cut:
        """Return the place of a query whose checkpoint is new. Spark also asks for it when it
        repeats a first batch, so this joins nothing."""
        return {"readerGroup": self._group.group_id, "reader": self._new, "batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.source.limits.events or self.source.settings.batch_events)

    def reportLatestOffset(self) -> Cut:
        return next(iter(self._tails().values()), {})

    @says_why
    def latestOffset(self, start: Cut, limit: ReadLimit) -> Cut:
        """Commit the micro-batch `start`, which Spark has recorded as done, and open the next."""
        budget = Budget.within(self.source.settings, *self.source.limits)
        if isinstance(limit, ReadMaxRows):
            budget = replace(budget, events=limit.max_rows)
        else:  # Trigger.Once
            budget = Budget(EVERYTHING, EVERYTHING, EVERYTHING)
        before = int(start["batch"])
        number = self._of(start).next(before, Reading(budget), self._until, self._lease)
        return start if number == before else {**start, "batch": number}

    def _of(self, offset: Cut) -> StreamingQuery:
        """Return the reader of an offset."""
        if self._query is None or self._query.reader_id != offset["reader"]:
            group, reader = int(offset["readerGroup"]), str(offset["reader"])
            self._query = StreamingQuery(self._database, self._group.name, group, reader)
        return self._query

    @says_why
    def partitions(self, start: Cut, end: Cut) -> Sequence[InputPartition]:
        if start == end:
            return []
        reading = Reading(Budget.of(self.source.settings))
        batch = self._of(end).batch(int(end["batch"]), reading, self._lease)
        plan = self._database.snapshot(lambda c: plan_batch(c, batch))
        self._of(end).lost = plan.lost
        for gap in plan.gaps:
            warnings.warn(TruncatedWarning(f"{gap}."), stacklevel=2)
        return parts_of(plan.streams[0].slices)

    @says_why
    def commit(self, end: Cut) -> None:
        """Commit the micro-batch `end` in the group."""
        self._of(end).commit(int(end["batch"]), self._lease)
