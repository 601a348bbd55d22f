"""Parquet folders as outputs of batches: what is written into them, and what of them counts."""

from itertools import groupby
from operator import attrgetter

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weir.consumers.columns import FOLDERS
from weir.consumers.outputs import Output
from weir.database.connection import Database
from weir.errors import NotFound, Unavailable
from weir.kernel.folder_files import Folder, FolderFile
from weir.reader_groups.outputs.records import committed_outputs
from weir.settings import Settings, load
from weir.spark.base.attempts import UNKNOWN, attempts
from weir.spark.base.exact import exact, quoted
from weir.spark.base.in_tasks import write_files
from weir.spark.base.left_over import delete_left_over
from weir.spark.base.session import COMPLETE, check_session, moved, private_session
from weir.warehouse.filesystem import only_by_jvm
from weir.warehouse.paths import spark_path

_UNTYPED = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}


def write_folder(frame: DataFrame, folder: Folder) -> list[FolderFile]:
    """Write the rows of a DataFrame below a folder in its tasks; return the files that are there.

    The folder counts with all that is in it. So what attempts at tasks have left that Spark does
    not count is deleted, and nobody may write there any more: raises Unavailable if that is not
    sure.
    """
    with attempts(frame.sparkSession) as others:
        files, answers = write_files(frame, folder)
    if not only_by_jvm(folder.root) and (left := others(answers)):
        known = {file.path for file in files}
        if left == UNKNOWN or not delete_left_over(folder.root, folder.path, known):
            raise Unavailable(
                "output_not_writable",
                "tasks of Spark failed or were lost, and may still write the same rows to "
                f"{folder.path} of {folder.root}; try again, and the next attempt writes to a "
                "folder of its own.",
            )
    return files


def output(spark: SparkSession, name: str, reader_group: str) -> DataFrame:
    """Return the committed rows of a Parquet output of a group as a DataFrame, each once.

    `name`: as the consumer names it, `parquet:late` or `late`. Columns that some batches lack are
    null there. The settings are those of jobs. Raises NotFound if nothing was committed yet.
    """
    check_session(spark)
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
