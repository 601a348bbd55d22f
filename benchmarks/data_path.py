"""Appending and reading 5 million rows, beside plain Spark doing the same to plain files."""

import shutil
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.installation.opened import Installation
from weir.model.key_space import KeyRange
from weir.model.names import StreamName, stream_name
from weir.spark.appends.appender import Appender
from weir.warehouse.paths import spark_path

ROWS = 5_000_000
# 15 boundaries between 16 unequal ranges: from 1 % to 14 % of the key space each.
BOUNDARIES = [0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.44, 0.5, 0.53, 0.6, 0.68, 0.79, 0.9, 0.98]
RANGES = [KeyRange(low, high) for low, high in pairwise([0.0, *BOUNDARIES, 1.0])]
COLUMNS = ["id", "key", "value", "payload"]


def source(setting: Setting) -> DataFrame:
    """Return the rows: an id, one of about 200,000 keys, a number, and a text that no other row
    has."""
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
    """Return a new stream with 16 unequal segments."""
    name = stream_name(f"bench/s{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=1, request_id=str(name))
    scale(setting.database, name, seal=["0.0"], ranges=RANGES, request_id=f"{name} 16")
    return name


def appender(setting: Setting) -> Appender:
    """Return an appender that says nothing, because the figures are on standard output."""
    return Appender(opened(setting))


def opened(setting: Setting) -> Installation:
    """Return the installation of a setting, which says nothing."""
    return Installation(
        setting.settings, setting.database, "bench", lambda line: None, lambda: setting.spark
    )


def append(setting: Setting) -> Figure:
    """Return the figure of an append to 16 unequal segments, beside a partitioned write."""
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


def appended(setting: Setting) -> StreamName:
    """Return the stream of 16 segments that holds the rows, appended in five transactions. All
    figures share it."""
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


def files_of(setting: Setting, name: StreamName) -> DataFrame:
    """Return a plain scan of a stream's files, with ranks. The names of their folders give the
    segment and the transaction."""
    stream_id = setting.database.transaction(
        lambda c: c.exec_driver_sql(
            "SELECT stream_id FROM streams WHERE stream = %s", (str(name),)
        ).scalar_one()
    )
    schema = StructType([*source(setting).schema.fields, StructField("_weir_seq", LongType())])
    root = spark_path(setting.settings.warehouse, str(stream_id))
    return setting.spark.read.schema(schema).parquet(root)


def to_nothing(frame: DataFrame) -> None:
    """Compute all rows of a DataFrame."""
    frame.write.format("noop").mode("overwrite").save()


def read(setting: Setting) -> Figure:
    """Return the figure of reading all events with segment, offset and clock, beside a scan of the
    same files."""
    name = appended(setting)
    return Figure(
        "read",
        "5 million events with segment, offset and clock beside a native scan of the same files "
        "and columns",
        lambda: to_nothing(setting.frame(name, "none")),
        lambda: to_nothing(files_of(setting, name).select(*COLUMNS)),
        limit=1.1,
        goal=1.05,
        warm_up=3,  # with one, the compiler of the JVM is still at work on what ours adds
    )


FIGURES = {"append": append, "read": read}
