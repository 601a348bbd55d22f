"""A small job that does what Weir's jobs do, so that the JVM learns which classes they need."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("weir training").getOrCreate()
here = str(Path.cwd())


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return what it gets: it starts the Python workers."""
    yield from batches


events = spark.range(1000).select(
    F.col("id").alias("offset"), (F.col("id") % 3).alias("segment"),
    F.sha2(F.col("id").cast("string"), 256).alias("key"),
    F.struct(F.lit("a").alias("b")).alias("struct"), F.current_timestamp().alias("time"),
)  # fmt: skip
(
    events.repartitionByRange(2, "segment", "offset").sortWithinPartitions("segment", "offset")
    .write.partitionBy("segment").parquet(f"{here}/events")
)  # fmt: skip
read = spark.read.parquet(f"{here}/events").where(F.col("offset") > 10)
read.select("offset", "segment", "key", "time").write.csv(f"{here}/csv", header=True)
read.select("offset", "struct").write.json(f"{here}/json")
spark.read.csv(f"{here}/csv", header=True, inferSchema=True).count()
spark.read.json(f"{here}/json").collect()
wanted = read.groupBy("segment").agg(F.count("*").alias("events"), F.min("offset"), F.max("time"))
read.select("offset").mapInArrow(same, "offset BIGINT").groupBy().sum().collect()
read.join(wanted, "segment").orderBy("offset").toPandas()
spark.stop()
