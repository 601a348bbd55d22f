"""The Parquet files of adjunct stores: scanned, written and measured."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from weir.adjunct.versions import AdjunctFile
from weir.model.schema import SEQ, Field, stored_name
from weir.spark.adjuncts.changes import CLOCK, HASH
from weir.spark.base.exact import exact
from weir.spark.base.in_place import write_in_place
from weir.spark.base.session import COMPLETE
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import filesystem, in_object_store
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
    """Write rows below a new folder of the warehouse, one file for each task; return the files, in
    the order of their hashes.

    Files without rows, of which Spark writes one, are deleted, and those of tasks that failed.
    """
    to, written = spark_path(warehouse, folder), None
    if in_object_store(warehouse):
        written = write_in_place(rows, to, (), _PARQUET)
    else:
        rows.write.options(**_PARQUET).mode("error").parquet(to)
    return _files(warehouse, folder, written)


def _files(warehouse: str, folder: str, written: set[str] | None) -> list[AdjunctFile]:
    """Return the files below a folder that have rows, and are of these names, if any are given;
    delete all others. Footers are read in parallel."""
    system, base = filesystem(warehouse)
    infos = system.get_file_info(
        fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True)
    )

    def read(info: fs.FileInfo) -> AdjunctFile | None:
        if written is not None and os.path.basename(info.path) not in written:
            return None  # it may not even be whole
        with system.open_input_file(info.path) as source:
            footer = pq.read_metadata(source)
        if footer.num_rows == 0:
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
    others = [info.path[len(base) + 1 :]
              for info, file in zip(parquet, files, strict=True) if file is None]  # fmt: skip
    if others:  # what can't be deleted now is in nobody's way
        delete_here([(warehouse, path) for path in others])
    return sorted((f for f in files if f is not None), key=lambda f: (f.low, f.path))
