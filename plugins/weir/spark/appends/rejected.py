"""Events on which a reader group failed, as rows of `<stream>.rejected`."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.model.schema import PLACES
from weir.spark.base.exact import as_json, quoted


def failed_events(frame: DataFrame, group: str, reason: str) -> DataFrame:
    """Return events on which a reader group failed as rows of `<stream>.rejected`. Their source is
    the group and the segment, and their column `place` has the offset."""
    user = quoted([name for name in frame.columns if name not in PLACES])
    segment = segment_text(F.col("_segment"))
    return frame.select(
        as_json(F.struct(*user)).alias("row"),
        F.concat(F.lit(f"group {group}, segment "), segment).alias("source"),
        F.col("_offset").alias("place"),
        F.lit(reason).alias("reason"),
    )


def segment_text(segment: Column) -> Column:
    """Return the name of a segment, such as 3.1, from its id."""
    number = segment.bitwiseAND(F.lit(0xFFFFFFFF)).cast("string")
    return F.concat(number, F.lit("."), F.shiftright(segment, 32).cast("string"))
