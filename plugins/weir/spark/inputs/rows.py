"""Input files as rows that have their ranks: (index of the file, row in the file).

Csv and Parquet files are read by the kernel. Of json files, Spark packs parts by size, so the files
Jan, Feb, Mar come out as Mar, Feb, Jan. Here one task reads small neighbouring files and sorts
their rows by rank, a large file is split as usual, and the parts are concatenated, so every task
has one contiguous range of ranks.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.inputs.files import BLOCK_BITS, ROW_BITS, ROW_MASK, Inputs
from weir.inputs.folder_columns import FolderColumns, folder_columns
from weir.inputs.rows import grouped
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_options import TextOptions
from weir.model.schema import SEQ, Field
from weir.spark.base.ordered_frames import one_after_another
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.session import private_session
from weir.spark.inputs.from_tasks import MOST, OPENING, FromTasks, read_in_tasks
from weir.spark.inputs.json_columns import Json, json_columns
from weir.spark.inputs.places import BLOCK, FILE, file_names, one_slash
from weir.warehouse.paths import spark_path

_LEAST = 4 << 20  # about so many bytes are read by one task, at least
# The columns from which the rank is computed.
_ON_THE_WAY = (FILE, BLOCK, "_weir_path", "_weir_file", "_weir_id")
log = logging.getLogger("weir.inputs")


def reading_session(spark: SparkSession, inputs: Inputs) -> SparkSession:
    """Return the session in which `read_inputs` works, so that no setting of a cluster changes what
    is read. Blocks of a split text file must not be smaller than the rank can tell apart."""
    conf: Any = spark._jsparkSession.sessionState().conf()
    least = 1 << inputs.block_shift
    zone = {"spark.sql.session.timeZone": inputs.how.time_zone}
    return private_session(
        spark,
        {
            **(zone if inputs.format == "json" else {}),
            # Java does not compile methods of more bytes, which is twenty times as slow.
            "spark.sql.codegen.hugeMethodLimit": "8000",
            "spark.sql.files.maxPartitionBytes": str(max(least, conf.filesMaxPartitionBytes())),
            "spark.sql.files.openCostInBytes": str(max(least, conf.filesOpenCostInBytes())),
        },
    )


def read_inputs(
    spark: SparkSession,
    inputs: Inputs,
    known: list[Field] | None,
    *,
    quarantine: bool = False,
    say: Callable[[str], None] = log.info,
) -> FromTasks:
    """Return the rows of the files with their rank (`_weir_seq`), one contiguous range of ranks
    per task.

    `known`: the stream's schema, if it has one. If rows may not fit it, they also have
    `_weir_malformed`. `quarantine`: mark rows that do not fit the schema there, where otherwise the
    whole input would be refused before it is read. Raises InvalidInput naming a file that cannot be
    read unchanged.
    """
    if inputs.format != "json":
        return read_in_tasks(spark, inputs, known, say, spark.sparkContext.defaultParallelism)
    _check_formats(spark, inputs.how)
    columns = json_columns(spark, inputs, known, quarantine, say)
    weights = [file.bytes + OPENING for file in inputs.files]
    target = max(_LEAST, min(MOST, sum(weights) // spark.sparkContext.defaultParallelism))
    groups = grouped(range(len(weights)), weights, target)
    rows = one_after_another([_read_group(spark, inputs, group, columns) for group in groups])
    fields = [
        one for one in rows.schema.jsonValue()["fields"] if one["name"] not in (SEQ, MALFORMED)
    ]
    folders = folder_columns(inputs, fields, known, say)
    if folders is not None:
        rows, fields = _with_folders(rows, folders), folders.fields
    return FromTasks(rows, len(groups), iter, fields, sum(weights), rows)


def _with_folders(frame: DataFrame, folders: FolderColumns) -> DataFrame:
    fields = {one["name"]: one for one in frame.schema.jsonValue()["fields"]}
    fields |= {one["name"]: one for one in folders.fields}
    names = list(fields)

    def added(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from folders.added(pa.Table.from_batches([batch])).select(names).to_batches()

    struct = StructType.fromJson({"type": "struct", "fields": list(fields.values())})
    with with_own_code(frame.sparkSession):
        return frame.mapInArrow(added, struct)


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


def _read_group(spark: SparkSession, inputs: Inputs, group: list[int], columns: Json) -> DataFrame:
    paths = [spark_path(inputs.root, inputs.files[i].path) for i in group]
    frame = columns.rows(columns.scan(spark, group))
    # An object of a file has a number of its own, also if it is not alone on its line.
    number = "_weir_id"
    frame = frame.withColumn(number, F.monotonically_increasing_id())
    if len(group) == 1:
        return frame.select("*", _rank(F.lit(group[0]), inputs).alias(SEQ)).drop(*_ON_THE_WAY)
    # One task reads them all, in any order; sorting by rank restores the order given.
    index = spark.createDataFrame(
        list(zip(file_names(spark, inputs.root, paths), group, strict=True)),
        "_weir_path string, _weir_file long",
    )
    joined = frame.join(F.broadcast(index), one_slash(F.col(FILE)) == F.col("_weir_path"), "left")
    file = F.coalesce(
        F.col("_weir_file"), F.raise_error(F.concat(F.lit("unknown input file "), FILE))
    ).cast("long")
    ranked = joined.select("*", _rank(file, inputs).alias(SEQ)).drop(*_ON_THE_WAY)
    return ranked.coalesce(1).sortWithinPartitions(SEQ)


def _rank(file: Column, inputs: Inputs) -> Column:
    # The number in a task increases within each block; see `reading_session` for the blocks.
    block = F.shiftleft(F.shiftright(F.col(BLOCK), inputs.block_shift), ROW_BITS)
    row = block + F.col("_weir_id").bitwiseAND(F.lit(ROW_MASK))
    return F.shiftleft(file.cast("long"), BLOCK_BITS + ROW_BITS) + row
