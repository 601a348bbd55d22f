"""Parquet folders as outputs of batches: how they are partitioned, and what of them counts."""

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from os.path import basename

from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from weir.consumers.columns import FOLDERS
from weir.consumers.outputs import Output
from weir.database.connection import Database
from weir.errors import NotFound, Unavailable
from weir.installation.opened import Say
from weir.reader_groups.outputs.records import committed_outputs
from weir.settings import Settings, load
from weir.spark.base.exact import exact, quoted
from weir.spark.base.in_place import all_ended, tagged, write_in_place
from weir.spark.base.session import (
    COMPLETE,
    check_classic,
    moved,
    private_session,
    writing_session,
)
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import filesystem, in_object_store
from weir.warehouse.paths import spark_path

_SAME_FOLDER = (
    "",
    "__HIVE_DEFAULT_PARTITION__",
)  # texts whose folder Spark names like that of null
_UNTYPED = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}


def write_parquet(output: Output, folder: str, frame: DataFrame, say: Say) -> None:
    """Write a DataFrame as Parquet into a folder of an output's root."""
    if output.partition_by:
        frame = named_folders(output, frame)
    writing, frame = writing_session(frame, say, {})  # no key is computed here
    options = dict[str, str]()
    if output.compression:
        options["compression"] = output.compression
    if output.rows_per_file:
        options["maxRecordsPerFile"] = str(output.rows_per_file)
    rows = moved(frame, writing)
    if in_object_store(output.root):
        _write_in_place(output, folder, rows, options)
        return
    writer = rows.write.mode("overwrite").options(**options)
    if output.partition_by:
        writer = writer.partitionBy(*output.partition_by)
    writer.parquet(spark_path(output.root, folder))


def _write_in_place(
    output: Output, folder: str, rows: DataFrame, options: Mapping[str, str]
) -> None:
    """Write where the files stay. The folder counts with all that is in it, so what tasks that
    failed have left is deleted, and nobody may write there any more.

    Raises Unavailable if that is not sure.
    """
    context = rows.sparkSession.sparkContext
    try:
        with tagged(context) as tag:
            written = write_in_place(
                rows, spark_path(output.root, folder), output.partition_by, options
            )
    except Exception as error:
        if not all_ended(context, tag):
            raise _in_doubt(output, folder) from error
        raise
    if not all_ended(context, tag):
        raise _in_doubt(output, folder)
    system, base = filesystem(output.root)
    found = system.get_file_info(
        fs.FileSelector(f"{base}/{folder}", recursive=True, allow_not_found=True)
    )
    others = [(output.root, info.path[len(base) + 1 :]) for info in found
              if info.type == fs.FileType.File and basename(info.path) not in written]  # fmt: skip
    if others and delete_here(others):
        raise _in_doubt(output, folder)


def _in_doubt(output: Output, folder: str) -> Unavailable:
    return Unavailable(
        "output_in_doubt",
        f"an executor was lost, or does not stop, while it wrote {output}, so rows of it may be in "
        f"{folder} twice; try again, and the next attempt writes to a folder of its own.",
    )


def named_folders(output: Output, frame: DataFrame) -> DataFrame:
    """Return a result with null for the texts that Spark gives the folder of null. Otherwise a task
    that has both would create the files of that folder twice, and fail."""
    texts = {field.name for field in frame.schema if isinstance(field.dataType, StringType)}
    if not texts & set(output.partition_by):
        return frame
    return frame.select(
        *(
            F.when(~column.isin(*_SAME_FOLDER), column).alias(name)
            if name in texts and name in output.partition_by
            else column
            for name, column in zip(frame.columns, quoted(frame.columns), strict=True)
        )
    )


def output(spark: SparkSession, name: str, reader_group: str) -> DataFrame:
    """Return the committed rows of a Parquet output of a group as a DataFrame, each once.

    `name`: as the consumer names it, `parquet:late` or `late`. Columns that some batches lack are
    null there. The settings are those of jobs. Raises NotFound if nothing was committed yet.
    """
    check_classic(spark)
    settings = load()
    with Database.of(settings) as database:
        return output_frame(spark, database, settings, name, reader_group)


def output_frame(
    spark: SparkSession, database: Database, settings: Settings, name: str, reader_group: str
) -> DataFrame:
    """Return what `output` does, for a program that has a database."""
    written = name if name.startswith("parquet:") else f"parquet:{name}"
    named = Output.parse(written, settings.output_roots).name
    folders = database.transaction(lambda c: committed_outputs(c, reader_group, named))
    frames = []
    for partitions, several in groupby(folders, attrgetter("partitions")):
        rows = list(several)
        paths = [exact(spark_path(row.root, row.path)) for row in rows]
        reading = private_session(spark, _UNTYPED)
        read = reading.read.option("mergeSchema", "true").options(**COMPLETE)
        if partitions:  # below folders of the group, whose names are columns, too
            base = rows[0].path.rpartition("/batch=")[0]
            read = read.option("basePath", spark_path(rows[0].root, base))
        try:
            frame = read.parquet(*paths)
        except AnalysisException as error:
            if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":  # no row was written
                continue
            raise
        if partitions:
            schema = StructType.fromDDL(partitions)
            assert isinstance(schema, StructType), partitions
            types = {f.name: f.dataType for f in schema.fields}
            columns = [c for c in frame.columns if c not in FOLDERS]
            frame = frame.select(
                *(
                    column.cast(types[c]).alias(c) if c in types else column
                    for c, column in zip(columns, quoted(columns), strict=True)
                )
            )
        frames.append(moved(frame, spark))
    if not frames:
        raise NotFound(
            "output_not_found",
            f"no rows of output {written} of reader group {reader_group} are committed; check both "
            "names, or run the consumer.",
        )
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame, allowMissingColumns=True)
    return found
