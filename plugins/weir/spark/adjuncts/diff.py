"""Compare two versions of an adjunct store."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.adjunct.versions import AdjunctVersion
from weir.consumers.store_parts import KEY
from weir.errors import InvalidInput
from weir.queries.adjunct.versions import AdjunctFile
from weir.spark.adjuncts.files import named, scan, struct_of
from weir.spark.base.exact import as_json


def diff_versions(
    spark: SparkSession, warehouse: str, before: AdjunctVersion, after: AdjunctVersion
) -> DataFrame:
    """Return the keys that differ between two versions of a store: `_weir_key`, `change` (added,
    removed or changed), and `before` and `after`, the values as JSON text.

    Reads only the files that the versions do not share. Raises InvalidInput for versions of two
    stores, or with keys of different types.
    """
    if before.store_id != after.store_id or before.fields[0] != after.fields[0]:
        raise InvalidInput(
            "join_invalid",
            f"version {before.version} of adjunct store {before.store} can't be compared with "
            f"version {after.version} of {after.store}; name two versions of one store whose keys "
            "have one type.",
        )
    shared = {file.path for file in before.files} & {file.path for file in after.files}
    if before.fields != after.fields:  # the same file has other columns in the other version
        shared = set()
    old = _values(spark, warehouse, before, [f for f in before.files if f.path not in shared])
    new = _values(spark, warehouse, after, [f for f in after.files if f.path not in shared])
    both = old.withColumnRenamed("value", "before").join(
        new.withColumnRenamed("value", "after"), KEY, "full_outer"
    )
    change = (
        F.when(F.col("before").isNull(), "added")
        .when(F.col("after").isNull(), "removed")
        .otherwise("changed")
    )
    different = ~F.col("before").eqNullSafe(F.col("after"))
    return both.where(different).select(KEY, change.alias("change"), "before", "after")


def _values(
    spark: SparkSession, warehouse: str, version: AdjunctVersion, files: list[AdjunctFile]
) -> DataFrame:
    values = [field for field in version.fields if field["name"] != KEY]
    value: Column = as_json(F.struct(*named(values)))
    rows = scan(spark, warehouse, files, struct_of(version.fields))
    return rows.select(KEY, value.alias("value"))
