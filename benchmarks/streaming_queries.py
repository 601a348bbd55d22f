"""What a streaming query that reads as the reader of a group costs, beside one of plain files."""

import json
import time

from pyspark.sql import DataFrame

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from benchmarks.small_batches import ROWS, filled


def stream(setting: Setting) -> Figure:
    """Return the figure of the micro-batches of a query with a group, each of a file, beside those
    of a query of as many plain Parquet files."""
    count = 100 if setting.full else 30
    setting.durable(True)
    spark = setting.spark
    store, name, source = filled(setting, count)
    config = setting.folder / f"{source.name}.toml"
    given = {"database": setting.settings.database, "warehouse": setting.settings.warehouse}
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items()))

    def run(frame: DataFrame) -> float:
        folder = setting.folder / f"checkpoint-{setting.number()}"
        seen: list[int] = []
        start = time.perf_counter()
        query = (
            frame.writeStream.foreachBatch(lambda rows, _: seen.append(rows.count()))
            .option("checkpointLocation", str(folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        seconds = time.perf_counter() - start
        if seen != [ROWS] * count:
            raise RuntimeError(f"{len(seen)} micro-batches in place of {count}")
        return seconds / count

    def ours() -> float:
        group = f"query-{setting.number()}"
        store.create_reader_group(group, [name])
        options = {"readerGroup": group, "maxFilesPerTrigger": "1", "config": str(config)}
        return run(spark.readStream.format("weir").options(**options).load())

    def plain() -> float:
        schema = "id long, customer string, amount double"
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return run(files.parquet(str(source)))

    return Figure(
        "engines/stream",
        f"a micro-batch of {ROWS:,} events of a query that is the reader of a group, the mean of "
        f"{count}, beside one of a plain Parquet file with Spark's checkpoint",
        ours, plain, limit=1.3, unit="s per micro-batch", notes={"micro-batches": count},
    )  # fmt: skip


FIGURES = {"engines/stream": stream}
