"""The columns of input files: find them, compare them with the stream's, and check for what Spark
would change or drop silently."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.inputs.files import Inputs
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_options import TextOptions
from weir.model.schema import Field
from weir.spark.base.exact import exact, quoted
from weir.spark.base.session import COMPLETE
from weir.spark.inputs.json_columns import Json, json_columns
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


Columns = Parquet | Json


def columns_of(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    quarantine: bool,
    say: Callable[[str], None],
) -> Columns:
    """Return how to read the files. In text files columns have the types of the stream's columns.

    Raises InvalidInput that names what cannot be read, or not unchanged.
    """
    if inputs.format == "json":
        _check_formats(spark, inputs.how)
        return json_columns(spark, inputs, known, quarantine, say)
    found = parquet_columns(inputs)
    if found.by_row:
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")  # a private session
    return Parquet(inputs, found)


def _check_formats(spark: SparkSession, how: TextOptions) -> None:
    """Raise InvalidInput for a format of dates or times that Spark does not know."""
    for name in ("date_format", "timestamp_format"):
        if not (pattern := getattr(how, name)):
            continue
        try:
            spark.range(1).select(F.date_format(F.current_timestamp(), pattern)).collect()
        except PySparkException:
            raise InvalidInput(
                "argument_invalid",
                f"{called(name)} is {pattern!r}, which is no pattern of Spark's; write it such as "
                "dd.MM.yyyy HH:mm:ss (y: year, M: month, d: day, H: hour, m: minute, s: second).",
            ) from None
