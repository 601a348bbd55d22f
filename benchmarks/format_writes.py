"""What `df.write.format("weir")` costs, beside plain Parquet by the same Python workers."""

import json
import os
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.streams import create_stream
from weir.model.names import stream_name
from weir.spark.reads.source import register

ROWS = 1_000_000


class _Plain(DataSourceArrowWriter):
    """Writes the rows of each task to a Parquet file, which is the least that a format does."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        os.makedirs(self._folder, exist_ok=True)
        table = pa.Table.from_batches(list(iterator))
        pq.write_table(table, f"{self._folder}/{uuid.uuid4().hex}.parquet")
        return WriterCommitMessage()


class PlainParquet(DataSource):
    """The format `plain_parquet`: a folder of files."""

    @classmethod
    def name(cls) -> str:
        return "plain_parquet"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _Plain(self.options["path"])


def write(setting: Setting) -> Figure:
    """Return the figure of a write of many rows with Spark's own verb."""
    spark = setting.spark
    register(spark)
    spark.dataSource.register(PlainParquet)
    settings = {"database": setting.settings.database, "warehouse": setting.settings.warehouse}
    config = setting.folder / "weir.toml"
    config.write_text("".join(f"{name} = {json.dumps(to)}\n" for name, to in settings.items()))
    name = stream_name(f"bench/written-{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=4, request_id=str(name))
    frame = spark.range(0, ROWS, 1, 2).selectExpr(
        "id", "concat('key ', pmod(hash(id), 100000)) AS key", "rand(7) AS value",
        "timestamp_micros(1370000000000000 + id * 1000) AS at",
    )  # fmt: skip

    def ours() -> None:
        options = {"writerId": "bench", "batchId": str(setting.number()), "config": str(config)}
        frame.write.format("weir").mode("append").options(**options).save(str(name))

    def reference() -> None:
        folder = str(setting.folder / f"plain {setting.number()}")
        frame.write.format("plain_parquet").mode("append").save(folder)

    return Figure(
        name="engines/write",
        what=f"{ROWS:,} rows by df.write.format('weir') into 4 segments, beside a Python data "
        "source that writes each task's rows to a Parquet file",
        ours=ours,
        reference=reference,
        limit=1.5,
    )


FIGURES = {"engines/write": write}
