"""Reads in an order, beside plain Spark bringing a scan of the same files into the same order."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import weir.spark
from benchmarks.data_path import (
    COLUMNS,
    ROWS,
    appended,
    appender,
    files_of,
    source,
    stream_of_16,
    to_nothing,
)
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.model.names import StreamName

# The names of the folders give segment and transaction; within those the rank is the order.
PLACE = ("_weir_segment", "_weir_tx")


def one_stream(setting: Setting, order: str) -> Figure:
    """Return the figure of reading one stream by segment or in write order, beside Spark's sort."""
    name = appended(setting)

    def plain() -> None:
        frame = files_of(setting, name)
        if order == "segment":
            frame = frame.repartition(16, "_weir_segment")
            frame = frame.sortWithinPartitions("_weir_segment", "_weir_tx", "_weir_seq")
        else:
            frame = frame.sort("_weir_tx", "_weir_seq")
        to_nothing(frame.select(*COLUMNS, *PLACE))

    return Figure(
        {"segment": "order/segment", "stream": "order/ordered"}[order],
        f'5 million events with order="{order}" beside Spark sorting a scan of the same files the '
        "same way",
        lambda: to_nothing(setting.frame(name, order)),
        plain,
        limit={"segment": 0.8, "stream": 0.6}[order],
    )


def merged(setting: Setting) -> Figure:
    """Return the figure of reading two streams in one order, beside Spark's sort."""
    count = ROWS // 2 if setting.full else ROWS // 4
    names = [_part(setting, part, ROWS // count) for part in range(2)]

    def scan(name: StreamName) -> DataFrame:
        frame = files_of(setting, name).select(*COLUMNS, *PLACE, "_weir_seq")
        return frame.withColumn("stream", F.lit(str(name)))

    def plain() -> None:
        both = scan(names[0]).union(scan(names[1]))
        to_nothing(both.sort("_weir_tx", "stream", "_weir_seq").drop("_weir_seq"))

    return Figure(
        "order/merged",
        f"two streams of {count:,} events in one write order, beside the union of scans of the "
        "same files and a sort",
        lambda: to_nothing(
            weir.spark.read(
                [str(name) for name in names], spark=setting.spark, settings=setting.settings
            )
        ),
        plain,
        limit=0.8,
    )


def _part(setting: Setting, part: int, parts: int) -> StreamName:
    """Return a stream of 16 segments with one of so many parts of the rows, appended in five
    transactions."""
    name = stream_of_16(setting)
    for i in range(5):
        appender(setting).append_frame(
            name,
            source(setting).where(F.col("id") % (5 * parts) == parts * i + part),
            writer_id="bench",
            batch_id=f"part {i}",
        )
    return name


FIGURES = {
    "order/segment": partial(one_stream, order="segment"),
    "order/ordered": partial(one_stream, order="stream"),
    "order/merged": merged,
}
