"""Read versions of adjunct stores and the history of their changes, natively."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField

from weir.adjunct.versions import AdjunctVersion, history_since
from weir.database.connection import Database
from weir.model.schema import SEQ
from weir.spark.adjuncts.changes import CLOCK
from weir.spark.adjuncts.files import DELETED, HIDDEN, named, scan, struct_of


def current_frame(spark: SparkSession, warehouse: str, version: AdjunctVersion) -> DataFrame:
    """Return the table of a version: `_weir_key`, the value columns, and in `_clock` the clock of
    the event that each row comes from."""
    rows = scan(spark, warehouse, version.files, struct_of(version.fields, [HIDDEN[1]]))
    return rows.select(*named(version.fields), F.col(CLOCK).alias("_clock"))


def history_frame(
    spark: SparkSession, database: Database, warehouse: str, version: AdjunctVersion, since: int
) -> DataFrame:
    """Return the rows of an older version and the changes after it; from these follows the value of
    each key at any clock from `since` to the version's.

    Columns: `_weir_key`, the value columns, `_clock`, `_seq` and `_deleted`. For each key the last
    row by (`_clock`, `_seq`) with at most some clock says what it was then. Raises Truncated if the
    store does not keep its history from that clock on.
    """
    history = database.snapshot(lambda c: history_since(c, version, since))
    schema = struct_of(version.fields, [*HIDDEN[1:], StructField(DELETED, BooleanType())])
    changes = scan(spark, warehouse, history.files, schema)
    if history.base is not None:
        before = scan(spark, warehouse, history.base.files, schema)
        changes = before.withColumn(DELETED, F.lit(False)).union(changes)
    return changes.select(
        *named(version.fields),
        F.col(CLOCK).alias("_clock"),
        F.col(SEQ).alias("_seq"),
        F.col(DELETED).alias("_deleted"),
    )
