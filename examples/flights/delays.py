"""What the demo runs over the flights: a consumer's function, as any user of Weir writes it.

It gets the events of one batch as a DataFrame and returns a DataFrame for each of its outputs. It
keeps nothing between batches: what it returns are parts, to be added up by whoever reads them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def partial_statistics(events: DataFrame) -> dict[str, DataFrame]:
    """Delays per carrier and day: counts and sums (minutes), into a stream and into Parquet.

    `received` notes every event in the order in which it came, for the demo's checks.
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
