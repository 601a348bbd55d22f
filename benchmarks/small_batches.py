"""What a small batch by Spark costs, beside a micro-batch of Structured Streaming."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import weir
from benchmarks.figure import Figure
from benchmarks.setting import Setting

ROWS = 1000


def filled(setting: Setting, count: int) -> tuple[weir.StreamStore, str, Path]:
    """Return a stream of so many appends of `ROWS` events, a file each, and a folder with the same
    files."""
    number = setting.number()
    name, source = f"bench/small-{number}", setting.folder / f"source-{number}"
    source.mkdir()
    store = setting.at_end.enter_context(weir.open(settings=setting.settings, spark=setting.spark))
    store.create_stream(name, "customer", segments=1)
    for i in range(count):
        ids = range(i * ROWS, (i + 1) * ROWS)
        rows = pa.table({"id": ids, "customer": [f"c{n % 97}" for n in ids],
                         "amount": [n / 7 for n in ids]})  # fmt: skip
        store.append(name, rows)
        pq.write_table(rows, source / f"{i:03}.parquet")
    return store, name, source


def batches(setting: Setting) -> Figure:
    """Return the figure of the batches of a group, each read and committed to a stream, beside
    Structured Streaming from Parquet to Parquet, a file of as many rows for each micro-batch."""
    count = 50 if setting.full else 20
    setting.durable(True)
    spark = setting.spark
    store, name, source = filled(setting, count)

    def ours() -> float:
        number = setting.number()
        group, out = f"g{number}", f"bench/out-{number}"
        store.create_stream(out, "customer", segments=1)
        store.create_reader_group(group, [name])
        start = time.perf_counter()
        done = 0
        for batch in store.reader(group, batch_events=ROWS):
            batch.commit({f"stream:{out}": batch.events})
            done += 1
        seconds = time.perf_counter() - start
        if (done, store.count(out)) != (count, count * ROWS):
            raise RuntimeError(f"{done} batches in place of {count}")
        return seconds / count

    def streaming() -> float:
        folder = setting.folder / f"streamed-{setting.number()}"
        start = time.perf_counter()
        query = (
            spark.readStream.schema("id long, customer string, amount double")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(source))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(folder / "out"))
        )
        query.awaitTermination()
        seconds = time.perf_counter() - start
        if len(list((folder / "out").glob("*.parquet"))) < count:
            raise RuntimeError("fewer micro-batches than files")
        return seconds / count

    return Figure(
        "shapes/batch-small",
        f"a batch of {ROWS:,} events of a group, read with Spark and committed to a stream, the "
        f"mean of {count}, beside Structured Streaming from Parquet to Parquet with checkpoints",
        ours, streaming, limit=2.5, goal=1.2, unit="s per batch", notes={"batches": count},
    )  # fmt: skip


FIGURES = {"shapes/batch-small": batches}
