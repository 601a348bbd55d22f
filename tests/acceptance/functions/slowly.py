"""What the consumers of these tests run: so slow that they can be killed in the middle."""

import time
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def events(frame: DataFrame) -> DataFrame:
    """Return each event with its place, after a second."""
    time.sleep(1)
    return frame.select("key", "n", "_segment", "_offset")


def priced(frame: DataFrame, adjuncts: Any) -> DataFrame:
    """Return each event with the price that a store has, after a second."""
    time.sleep(1)
    [store] = adjuncts
    joined: DataFrame = adjuncts.enrich(
        frame.withColumn("item", F.lit("it")), store, "item", prefix="now_"
    )
    return joined.select("n", "now_price")
