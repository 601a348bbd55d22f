"""The Parquet files of adjunct stores: scanned, written and measured."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from weir.adjunct.versions import AdjunctFile
from weir.model.schema import SEQ, Field
from weir.spark.adjuncts.changes import CLOCK, HASH
from weir.spark.base.exact import exact
from weir.spark.base.session import COMPLETE
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import spark_path

DELETED = "_weir_deleted"
HIDDEN = [StructField(name, LongType()) for name in (HASH, CLOCK, SEQ)]
_PARQUET = {
    # Looking up one key reads one row group of a file.
    "parquet.block.row.count.limit": "65536",
    f"parquet.enable.dictionary#{HASH}": "false",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def struct_of(fields: Sequence[Field], more: Sequence[StructField] = ()) -> StructType:
    """Return the columns of a version, and others, as Spark reads them."""
    known = StructType.fromJson({"type": "struct", "fields": list(fields)})
    return StructType([*known.fields, *more])


def scan(
    spark: SparkSession, warehouse: str, files: Sequence[AdjunctFile], schema: StructType
) -> DataFrame:
    """Return the rows of files of a store. A column that a file does not have is null."""
    if not files:
        return spark.createDataFrame([], schema)
    paths = [exact(spark_path(warehouse, file.path)) for file in files]
    return spark.read.schema(schema).options(**COMPLETE).parquet(*paths)


def write_rows(rows: DataFrame, warehouse: str, folder: str) -> None:
    """Write rows below a folder of the warehouse, one file for each task."""
    rows.write.options(**_PARQUET).mode("error").parquet(spark_path(warehouse, folder))


def delete_empty_files(warehouse: str, folder: str) -> list[AdjunctFile]:
    """Delete the files below a folder that have no rows, as Spark writes one also where there is
    none; return the others. Their footers are read in parallel."""
    system, base = filesystem(warehouse)
    infos = system.get_file_info(
        fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True)
    )

    def read(info: fs.FileInfo) -> AdjunctFile | None:
        with system.open_input_file(info.path) as source:
            footer = pq.read_metadata(source)
        if footer.num_rows == 0:
            system.delete_file(info.path)
            return None
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        column = names.index(HASH)
        groups = range(footer.num_row_groups)
        found = [footer.row_group(i).column(column).statistics for i in groups]
        path = info.path[len(base) + 1 :]
        low, high = min(s.min for s in found), max(s.max for s in found)
        return AdjunctFile(path, footer.num_rows, info.size, low, high)

    parquet = [i for i in infos if i.type == fs.FileType.File and i.path.endswith(".parquet")]
    with ThreadPoolExecutor(16) as pool:
        files = list(pool.map(read, parquet))
    return sorted((f for f in files if f is not None), key=lambda f: (f.low, f.path))
