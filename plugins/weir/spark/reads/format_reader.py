"""The batch reader of the format `weir`, with the filters that Spark hands to it."""

from collections.abc import Iterable, Sequence

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from weir.spark.failures.workers import says_why
from weir.spark.reads.format_filters import matching
from weir.spark.reads.format_parts import (
    PartReader,
    closed,
    cut_of,
    parts_of,
    slices_between,
)
from weir.spark.reads.format_source import StreamSource


class _Push:
    """The method `pushFilters` of a reader. PySpark refuses a reader with a method of its own while
    `spark.sql.python.filterPushdown.enabled` is off; it takes this for the inherited one."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "Reader") -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.filters = list(filters)
        return filters  # Spark applies all of them to the rows of the files that are read


class Reader(PartReader, DataSourceReader):
    """Reads the events between two stream cuts or times."""

    def __init__(self, source: StreamSource, schema: StructType) -> None:
        super().__init__(source, schema)
        self.filters: list[Filter] = []
        self.__dict__["pushFilters"] = _Push(self)

    @says_why
    def partitions(self) -> Sequence[InputPartition]:
        options = self.source.options
        span = closed(self.source)
        start = span.since or cut_of(options.get("start", "head"), "head")
        end = span.until or cut_of(options.get("end", "tail"), "tail")
        by_time = "start" not in options and "end" not in options
        slices = slices_between(self.source, start, end, by_time=by_time)
        return parts_of(matching(self.source, slices, self.filters) if self.filters else slices)
