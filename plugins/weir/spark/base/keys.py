"""Keys that no event can have (`weir.model.names.unusable_key`), among those of many rows."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.model.names import LONGEST_KEY


def is_unusable(key: Column) -> Column:
    """Return whether a text can't be a key; null if it is null."""
    return (F.octet_length(key) > F.lit(LONGEST_KEY)) | F.contains(key, F.lit("\0"))
