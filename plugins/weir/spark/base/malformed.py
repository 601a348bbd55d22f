"""The column that says why a row of the input can't become an event."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.kernel.rejected import FAULT, ROW


def malformed(row: Column) -> Column:
    """Return what marks a malformed row: its text, and no value of it."""
    null = F.lit(None).cast("string")
    return F.struct(row.cast("string").alias(ROW), *[null.alias(name) for name in FAULT])
