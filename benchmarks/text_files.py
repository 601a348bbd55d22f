"""Appending a csv file whose types are not known, beside Spark's own inference and write."""

import shutil

from pyspark.sql import functions as F

from benchmarks.data_path import appender, source
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.streams import create_stream
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.model.names import stream_name

_SMALL = 500_000  # rows of a small run


def append_csv(setting: Setting) -> Figure:
    """Return the figure of an append of a csv file to a new stream of one segment: a guess of the
    types that is checked by the way back, and the write."""
    rows = source(setting) if setting.full else source(setting).limit(_SMALL)
    folder, plain = setting.folder / "csv", setting.folder / "plain-csv"
    path = folder / "rows.csv"
    if not path.exists():
        folder.mkdir()
        found = rows.select(
            "id", "key", F.round("value", 3).alias("value"), "payload",
            F.timestamp_seconds(F.col("id") + 1_700_000_000).cast("string").alias("at"),
        ).toPandas()  # fmt: skip
        found.to_csv(path, index=False)

    def ours() -> None:
        name = stream_name(f"bench/s{setting.number()}")
        create_stream(setting.database, name, routing_key="key", segments=1, request_id=str(name))
        inputs = find_inputs([str(path)], setting.settings.input_roots)
        by = appender(setting)
        append_files(by.installation, FilesOf(name, inputs), by.stage_files)

    def reference() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        read = setting.spark.read.options(header=True, inferSchema=True, escape='"')
        read.csv(str(path)).write.parquet(str(plain))

    return Figure(
        "append/csv",
        "5 million rows (small: a tenth) of a csv file with types to be guessed, committed, "
        "beside Spark's inference and write of the same file",
        ours,
        reference,
        limit=1.2,
    )


FIGURES = {"append/csv": append_csv}
