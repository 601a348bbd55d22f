"""The columns of Parquet files that Spark reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.inputs.files import Inputs
from weir.kernel.rejected import MALFORMED
from weir.spark.base.exact import exact, quoted
from weir.spark.base.session import COMPLETE
from weir.spark.inputs.parquet_columns import ParquetColumns, parquet_columns
from weir.spark.inputs.places import FILE, file_names, one_slash
from weir.warehouse.paths import spark_path

ROW = "_weir_row"  # the column with the number of a row in its Parquet file


@dataclass(frozen=True)
class Parquet:
    """How to read the Parquet files of an append."""

    inputs: Inputs
    columns: ParquetColumns

    def scan(self, spark: SparkSession, group: Sequence[int]) -> DataFrame:
        """Return the rows of some files, with their places."""
        paths = [exact(spark_path(self.inputs.root, self.inputs.files[i].path)) for i in group]
        reader = spark.read.schema(self.columns.scanned).options(**COMPLETE)
        frame = reader.parquet(*paths).select(
            "*", F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW)
        )
        for name, files in self.columns.void_in.items():
            full = [spark_path(self.inputs.root, file) for file in files]
            void = one_slash(F.col(FILE)).isin(file_names(spark, self.inputs.root, full))
            frame = frame.withColumn(name, F.when(~void, *quoted([name])))
        return frame

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows in Spark's types, and MALFORMED if that may lose digits."""
        return self.columns.parsed(frame, MALFORMED)


def parquet(spark: SparkSession, inputs: Inputs) -> Parquet:
    """Return how to read Parquet files. Raises InvalidInput that names what cannot be read, or not
    unchanged."""
    found = parquet_columns(inputs)
    if found.by_row:
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")  # a private session
    return Parquet(inputs, found)
