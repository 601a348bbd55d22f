"""The column that says why a row of the input can't become an event."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.kernel.rejected import FAULT, ROW

COLUMN, TEXT, TYPE = (
    FAULT  # beside the row, the fields of a mark (`weir.kernel.rejected.MALFORMED`)
)


def malformed(row: Column, fault: Column | None = None) -> Column:
    """Return what marks a malformed row: its text, and the fault of one of its values."""
    null = F.lit(None).cast("string")
    fault_parts = [null] * 3 if fault is None else [fault.getField(n) for n in (COLUMN, TEXT, TYPE)]
    names = (COLUMN, TEXT, TYPE)
    parts = [part.alias(name) for part, name in zip(fault_parts, names, strict=True)]
    return F.struct(row.cast("string").alias(ROW), *parts)


def fault(column: str, text: Column, kind: str) -> Column:
    """Return a value's fault: the column, the text that was found, and the type that it lacks."""
    return F.struct(F.lit(column).alias(COLUMN), text.alias(TEXT), F.lit(kind).alias(TYPE))
