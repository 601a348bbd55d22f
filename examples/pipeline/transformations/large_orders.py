"""Streams of Weir as the source and the sink of a declarative pipeline (Spark 4.1 and later).

Each run appends the large orders that came since the last one, exactly once.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.temporary_view
def orders() -> DataFrame:
    return spark.readStream.format("weir").load("shop/orders").drop("_segment", "_offset", "_clock")


dp.create_sink("large", "weir", {"stream": "shop/large", "writerId": "large orders"})


@dp.append_flow(target="large")
def large_orders() -> DataFrame:
    return spark.readStream.table("orders").where("amount >= 100")
