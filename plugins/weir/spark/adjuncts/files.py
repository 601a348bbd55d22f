"""The Parquet files of adjunct stores: scanned, written and measured."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weir.kernel.folder_files import Folder
from weir.model.schema import SEQ, Field, stored_name
from weir.queries.adjunct.versions import AdjunctFile
from weir.spark.adjuncts.changes import CLOCK, HASH
from weir.spark.base.exact import exact
from weir.spark.base.in_tasks import write_files
from weir.spark.base.left_over import delete_left_over
from weir.spark.base.session import COMPLETE
from weir.warehouse.paths import spark_path

DELETED = "_weir_deleted"
HIDDEN = [StructField(name, LongType()) for name in (HASH, CLOCK, SEQ)]
_GROUP_ROWS = 1 << 16  # looking up one key reads one row group of a file


def struct_of(fields: Sequence[Field], more: Sequence[StructField] = ()) -> StructType:
    """Return columns of a version or a stream as files of a store have them, and others."""
    stored = [{**field, "name": stored_name(field)} for field in fields]
    known = StructType.fromJson({"type": "struct", "fields": stored})
    return StructType([*known.fields, *more])


def named(fields: Sequence[Field], within: str = "") -> list[Column]:
    """Return columns of files of a store by the names of a version or a stream. `within`: the
    struct that has them."""
    above = [within] if within else []
    return [
        F.col(".".join(f"`{part.replace('`', '``')}`" for part in (*above, stored_name(field))))
        .alias(field["name"])
        for field in fields
    ]  # fmt: skip


def scan(
    spark: SparkSession, warehouse: str, files: Sequence[AdjunctFile], schema: StructType
) -> DataFrame:
    """Return the rows of files of a store. A column that a file does not have is null."""
    if not files:
        return spark.createDataFrame([], schema)
    paths = [exact(spark_path(warehouse, file.path)) for file in files]
    return spark.read.schema(schema).options(**COMPLETE).parquet(*paths)


def write_rows(rows: DataFrame, warehouse: str, folder: str) -> list[AdjunctFile]:
    """Write rows below a new folder of the warehouse, one file for each task that has some; return
    the files, in the order of their hashes. What tasks that failed have left is deleted as far as
    possible: it is in nobody's way."""
    place = Folder(
        warehouse, folder, rows.schema.jsonValue()["fields"], compression="zstd", file_rows=None,
        group_rows=_GROUP_ROWS, hashes=HASH,
    )  # fmt: skip
    written, _ = write_files(rows, place)
    files = [AdjunctFile(*file) for file in written]
    delete_left_over(warehouse, folder, {file.path for file in files})
    return sorted(files, key=lambda file: (file.low, file.path))
