"""A small job that does what Weir's jobs do, so that Java learns which classes they load
(`weir.local.spark_start`).
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return what it gets. For this, Spark starts its Python workers."""
    yield from batches


def main(folder: str) -> None:
    """Write, read, join and sort some rows below a folder."""
    spark = SparkSession.builder.appName("weir training").getOrCreate()
    rows = spark.range(1000).select(
        F.col("id").alias("offset"), (F.col("id") % 3).alias("segment"),
        F.sha2(F.col("id").cast("string"), 256).alias("key"),
        F.struct(F.lit("a").alias("b")).alias("struct"), F.current_timestamp().alias("time"),
    )  # fmt: skip
    (
        rows.repartitionByRange(2, "segment", "offset").sortWithinPartitions("segment", "offset")
        .write.partitionBy("segment").parquet(f"{folder}/events")
    )  # fmt: skip
    read = spark.read.parquet(f"{folder}/events").where(F.col("offset") > 10)
    counted = read.groupBy("segment").agg(F.count("*"), F.min("offset"), F.max("time"))
    read.join(counted, "segment").orderBy("offset").toPandas()
    read.select("offset").mapInArrow(same, "offset BIGINT").groupBy().sum().collect()
    spark.stop()


if __name__ == "__main__":
    main(str(Path.cwd()))
