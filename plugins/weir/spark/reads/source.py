"""`spark.read.format("weir")` and `spark.readStream.format("weir")`: the convenient way to read.

This is a Python data source. Its rows pass through Python workers, so it is several times slower
than `weir.spark.reads.native`. A streaming query keeps its position in its own checkpoint, and does
not hold retention back, unless it reads as the reader of a group.
"""

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from weir.errors import InvalidInput
from weir.spark.appends.format_writer import batch_writer, stream_writer
from weir.spark.failures.workers import says_why
from weir.spark.reads.format_group import GroupReader
from weir.spark.reads.format_reader import Reader
from weir.spark.reads.format_source import StreamSource
from weir.spark.reads.format_stream import StreamReader


def register(spark: SparkSession) -> None:
    """Register the format `weir` in a session. In further threads of a classic session, also let
    Spark's writes find it: they look in the thread's active session, which such a thread lacks."""
    spark.dataSource.register(WeirSource)
    spark.createDataFrame([], "n INT")  # makes the session the thread's active one


class WeirSource(StreamSource):
    """The data source for `load("scope/stream")`.

    Options: `start` and `end` are stream cuts in JSON, by default head and tail; for a streaming
    query, `start` may be `tail`. In their place, `since` and `until` are times; a streaming query
    ends at `until`. `eventTimeSince` and `eventTimeUntil` keep only the events whose event time is
    at or after the one and before the other. `onGap` is `fail` (default), or `skip` to continue
    after events that were truncated before they were read, also those after `since`;
    `weir.TruncatedWarning` then says how many are missing, and says it of a batch without a start
    that is empty because of it.
    `maxEventsPerTrigger`, `maxBytesPerTrigger` and `maxFilesPerTrigger` limit a micro-batch.
    `readerGroup` lets a streaming query read as the reader of a group, which holds retention back;
    the stream may then be left out. `columns` are the names of those to read, with commas between
    them. `config` is the path of a weir.toml, if WEIR_CONFIG does not name it where Spark's driver
    runs.
    """

    @says_why
    def reader(self, schema: StructType) -> DataSourceReader:
        if self.group is not None:
            raise InvalidInput(
                "argument_invalid",
                "readerGroup is given for a read; use it with readStream, or read the batches of "
                "the group with a Reader of weir.spark.",
            )
        return Reader(self, schema)

    @says_why
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self, schema) if self.group is None else GroupReader(self, schema)

    @says_why
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.stream, self.settings, self.options, schema, overwrite=overwrite)

    @says_why
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return stream_writer(
            self.stream, self.settings, self.options, schema, overwrite=overwrite,
            begins=not self._sent,
        )  # fmt: skip
