"""Input files as rows that have their ranks: (index of the file, row in the file).

Text files are read by the kernel. Of Parquet files Spark packs parts by size, so the files Jan,
Feb, Mar come out as Mar, Feb, Jan. Here one task reads small neighbouring files and sorts their
rows by rank, a large file is split as usual, and the parts are concatenated, so every task has one
contiguous range of ranks.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.inputs.files import ROW_BITS, Inputs
from weir.inputs.folder_names import partitions_of
from weir.model.schema import SEQ, Field
from weir.spark.base.calls import grouped
from weir.spark.base.nanoseconds import AS_LONG
from weir.spark.base.ordered_frames import one_after_another
from weir.spark.base.session import private_session
from weir.spark.inputs.columns import ROW, Parquet, parquet
from weir.spark.inputs.csv_tasks import MOST, OPENING, FromTasks, text_tasks
from weir.spark.inputs.partition_columns import with_partitions
from weir.spark.inputs.places import FILE, file_names, one_slash
from weir.warehouse.paths import spark_path

_LEAST = 4 << 20  # about so many bytes are read by one task, at least
# The columns from which the rank is computed.
_ON_THE_WAY = (FILE, ROW, "_weir_path", "_weir_file")
log = logging.getLogger("weir.inputs")


def reading_session(spark: SparkSession) -> SparkSession:
    """Return the session in which `read_inputs` works, so that no setting of a cluster changes what
    is read."""
    # Java does not compile methods of more bytes, which is twenty times as slow.
    return private_session(spark, {"spark.sql.codegen.hugeMethodLimit": "8000", **AS_LONG})


def read_inputs(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    *,
    quarantine: bool = False,
    say: Callable[[str], None] = log.info,
) -> DataFrame | FromTasks:
    """Return the rows of the files with their rank (`_weir_seq`), one contiguous range of ranks
    per task.

    `known`: the stream's schema, if it has one. If rows may not fit it, they also have
    `_weir_malformed`. `quarantine`: mark rows that do not fit the schema there, where otherwise the
    whole input would be refused before it is read. Raises InvalidInput naming a file that cannot be
    read unchanged.
    """
    partitions = partitions_of([one.path for one in inputs.files])
    if partitions:
        say(f"columns from the names of folders: {', '.join(partitions)}")
    parallel = spark.sparkContext.defaultParallelism
    if inputs.format != "parquet":
        found = text_tasks(spark, inputs, known, say, parallel, quarantine=quarantine)
        if not partitions:
            return found
        rows = with_partitions(found.frame(), partitions, known, ROW_BITS)
        return replace(found, rows=rows)
    columns = parquet(spark, inputs)
    weights = [file.bytes + OPENING for file in inputs.files]
    target = max(_LEAST, min(MOST, sum(weights) // parallel))
    groups = grouped(range(len(weights)), weights, target)
    parts = [_read_group(spark, inputs, group, columns) for group in groups]
    rows = one_after_another(parts)
    if partitions:
        rows = with_partitions(rows, partitions, known, ROW_BITS)
    return rows


def _read_group(
    spark: SparkSession, inputs: Inputs, group: list[int], columns: Parquet
) -> DataFrame:
    paths = [spark_path(inputs.root, inputs.files[i].path) for i in group]
    frame = columns.rows(columns.scan(spark, group))
    if len(group) == 1:
        return frame.select("*", _rank(F.lit(group[0])).alias(SEQ)).drop(*_ON_THE_WAY)
    # One task reads them all, in any order; sorting by rank restores the order given.
    index = spark.createDataFrame(
        list(zip(file_names(spark, inputs.root, paths), group, strict=True)),
        "_weir_path string, _weir_file long",
    )
    joined = frame.join(F.broadcast(index), one_slash(F.col(FILE)) == F.col("_weir_path"), "left")
    file = F.coalesce(
        F.col("_weir_file"), F.raise_error(F.concat(F.lit("unknown input file "), FILE))
    ).cast("long")
    ranked = joined.select("*", _rank(file).alias(SEQ)).drop(*_ON_THE_WAY)
    return ranked.coalesce(1).sortWithinPartitions(SEQ)


def _rank(file: Column) -> Column:
    return F.shiftleft(file.cast("long"), ROW_BITS) + F.col(ROW)
