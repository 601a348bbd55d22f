"""Appending and reading 5 million rows, beside plain Spark doing the same to plain files."""

import shutil
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.model.names import StreamName, stream_name
from weir.spark.append import Appender
from weir.spark.native_read import read_stream_frame
from weir.warehouse.paths import spark_path

ROWS = 5_000_000
# 15 boundaries between 16 unequal ranges: from 1 % to 14 % of the key space each.
BOUNDARIES = [0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.44, 0.5, 0.53, 0.6, 0.68, 0.79, 0.9, 0.98]
COLUMNS = ["id", "key", "value", "payload"]


def source(setting: Setting) -> DataFrame:
    """The rows: an id, one of 100,000 keys, a number and a text of their own."""
    path = setting.folder / "source"
    if not path.exists():
        rows = setting.spark.range(ROWS).select(
            "id",
            F.concat(F.lit("key-"), F.xxhash64("id") % 100_000).alias("key"),
            (F.rand(seed=7) * 1000).alias("value"),
            F.concat(F.lit("payload of "), "id").alias("payload"),
        )
        rows.repartition(4).write.parquet(str(path))
    return setting.spark.read.parquet(str(path))


def stream_of_16(setting: Setting) -> StreamName:
    """A new stream with 16 unequal segments."""
    name = stream_name(f"bench/s{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=1, request_id=str(name))
    scale(setting.database, name, seal=["0.0"], boundaries=BOUNDARIES, request_id=f"{name} 16")
    return name


def appender(setting: Setting) -> Appender:
    """Quiet, as the figures are on standard output."""
    return Appender(setting.spark, setting.database, setting.settings, "bench", lambda line: None)


def append(setting: Setting) -> Figure:
    """Into 16 unequal segments, committed, beside a partitioned write."""
    rows = source(setting)
    name = stream_of_16(setting)
    plain = setting.folder / "plain"
    # The same 16 partitions for the reference, computed beforehand like any partition column.
    steps = F.shiftrightunsigned(F.xxhash64("key"), 11) * F.lit(2.0**-53)
    part = sum((F.when(steps >= b, 1).otherwise(0) for b in BOUNDARIES), F.lit(0))
    partitioned = rows.withColumn("part", part)
    ready = setting.folder / "partitioned"
    if not ready.exists():
        partitioned.write.parquet(str(ready))
    partitioned = setting.spark.read.parquet(str(ready))

    def ours() -> None:
        appender(setting).append_frame(
            name, partitioned.select(*COLUMNS), writer_id="bench", batch_id=str(setting.number())
        )

    def reference() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        partitioned.write.partitionBy("part").parquet(str(plain))

    return Figure(
        "append",
        "5 million rows into 16 unequal segments, committed, beside df.write.partitionBy of the "
        "same rows into 16 partitions",
        ours,
        reference,
        limit=1.2,
        goal=1.10,
    )


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def appended(setting: Setting) -> StreamName:
    """A stream of 16 segments that holds the rows, appended in five transactions."""
    cached = setting.__dict__.get("_appended")
    if cached is None:
        cached = setting.__dict__["_appended"] = stream_of_16(setting)
        for i in range(5):
            appender(setting).append_frame(
                cached,
                source(setting).where(F.col("id") % 5 == i),
                writer_id="bench",
                batch_id=f"part {i}",
            )
    return cached


def _reading(
    setting: Setting,
    order: str,
    reference: Callable[[DataFrame], DataFrame],
    what: str,
    limit: float,
    goal: float,
) -> Figure:
    name = appended(setting)
    stream_id = setting.database.transaction(
        lambda c: c.exec_driver_sql(
            "SELECT stream_id FROM streams WHERE stream = %s", (str(name),)
        ).scalar_one()
    )
    root = spark_path(setting.settings.warehouse, str(stream_id))
    schema = StructType([*source(setting).schema.fields, StructField("_weir_seq", LongType())])

    def scan() -> DataFrame:
        return setting.spark.read.schema(schema).parquet(root)

    return Figure(
        {"none": "read", "segment": "read_segment", "stream": "read_stream"}[order],
        what,
        lambda: _noop(
            read_stream_frame(setting.spark, setting.database, setting.settings, name, order=order)
        ),
        lambda: _noop(reference(scan())),
        limit,
        goal,
    )


def read(setting: Setting) -> Figure:
    """All events with segment, offset and clock, beside a scan of the same files."""
    return _reading(
        setting,
        "none",
        lambda frame: frame.select(*COLUMNS),
        "5 million events with segment, offset and clock beside a native scan of the same files "
        "and columns",
        limit=1.1,
        goal=1.05,
    )


def read_ordered(setting: Setting, order: str) -> Figure:
    """The same in an order, beside repartitioning and sorting that scan by the same columns."""

    def plain(frame: DataFrame) -> DataFrame:
        # What plain Spark must do: the folder names give segment and transaction; within those
        # the rank is the order.
        if order == "segment":
            frame = frame.repartition(16, "_weir_segment")
            frame = frame.sortWithinPartitions("_weir_segment", "_weir_tx", "_weir_seq")
        else:
            frame = frame.repartitionByRange(16, "_weir_tx", "_weir_seq")
            frame = frame.sortWithinPartitions("_weir_tx", "_weir_seq")
        return frame.select(*COLUMNS, "_weir_segment", "_weir_tx")

    return _reading(
        setting,
        order,
        plain,
        f'5 million events with order="{order}" beside Spark repartitioning and sorting a scan of '
        "the same files the same way",
        limit=1.3,
        goal=0.8,
    )


FIGURES = {
    "append": append,
    "read": read,
    "read_segment": partial(read_ordered, order="segment"),
    "read_stream": partial(read_ordered, order="stream"),
}
