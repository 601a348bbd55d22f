"""The consumer of the demo, as any user of Weir writes one.

Its function gets the events of one batch as a DataFrame and returns a DataFrame for each output. It
keeps nothing between batches: it returns partial statistics, which readers add up.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def partial_statistics(events: DataFrame) -> dict[str, DataFrame]:
    """Return counts and sums of delays (minutes) per carrier and day, for a stream and for Parquet.

    `received` has every event in the order in which it came, for the demo's checks.
    """
    statistics = events.groupBy("carrier", F.make_date("year", "month", "day").alias("day")).agg(
        F.count(F.lit(1)).alias("flights"),
        F.count("dep_delay").alias("departed"),
        F.coalesce(F.sum("dep_delay"), F.lit(0)).alias("dep_delay"),
        F.count("arr_delay").alias("arrived"),
        F.coalesce(F.sum("arr_delay"), F.lit(0)).alias("arr_delay"),
    )
    received = events.select(
        "tailnum", "_segment", "_offset", "source_row",
        F.monotonically_increasing_id().alias("received"),
    )  # fmt: skip
    return {"nyc/delays": statistics, "delays": statistics, "received": received}
