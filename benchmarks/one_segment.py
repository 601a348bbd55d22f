"""One segment, as a new stream has it: one big append, reading it, and reading very many small
appends, beside plain Spark writing and reading plain files of the same rows."""

import shutil
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data_path import ROWS, appender, opened, source, to_nothing
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.arrow.append import append_table
from weir.controller.streams import create_stream
from weir.model.names import StreamName, stream_name

SMALL_APPENDS, SMALL_ROWS = 2_000, 1_000


def _stream(setting: Setting) -> StreamName:
    """Return a new stream with one segment."""
    name = stream_name(f"bench/one{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=1, request_id=str(name))
    return name


def append(setting: Setting) -> Figure:
    """Return the figure of a big append into one segment, beside a plain write."""
    rows = source(setting)
    name = _stream(setting)
    plain = setting.folder / "plain one"

    def ours() -> None:
        appender(setting).append_frame(
            name, rows, writer_id="bench", batch_id=str(setting.number())
        )

    def reference() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        rows.write.parquet(str(plain))

    return Figure(
        "shapes/append-one-segment",
        "5 million rows into one segment, committed, beside df.write.parquet of the same rows",
        ours,
        reference,
        limit=2.5,
        goal=1.3,
    )


def _appended(setting: Setting) -> StreamName:
    """Return the stream of one segment that holds the rows, appended at once; all figures share
    it."""
    cached = setting.__dict__.get("_appended_to_one")
    if cached is None:
        cached = setting.__dict__["_appended_to_one"] = _stream(setting)
        appender(setting).append_frame(cached, source(setting), writer_id="bench", batch_id="all")
        source(setting).write.parquet(str(setting.folder / "plain all"))
    return cached


def read(setting: Setting, name: str, order: str, limit: float, goal: float) -> Figure:
    """Return the figure of reading one segment in an order, beside a scan of plain files."""
    stream = _appended(setting)
    plain = str(setting.folder / "plain all")
    return Figure(
        name,
        f"{ROWS:,} events of one segment, one append, with order={order!r}, beside a scan of plain "
        "files of the same rows",
        lambda: to_nothing(setting.frame(stream, order)),
        lambda: to_nothing(setting.spark.read.parquet(plain)),
        limit=limit,
        goal=goal,
        warm_up=3,
    )


def many_small(setting: Setting) -> Figure:
    """Return the figure of reading very many small appends whole, beside as many plain files."""
    stream = _stream(setting)
    plain = setting.folder / "plain small"
    plain.mkdir()
    for i, table in enumerate(_small_tables()):
        append_table(opened(setting), str(stream), table, writer_id="bench", batch_id=str(i))
        pq.write_table(table, plain / f"{i}.parquet")
    return Figure(
        "shapes/many-small",
        f"{SMALL_APPENDS:,} appends of {SMALL_ROWS:,} rows to one segment read whole, beside a "
        "scan of as many plain files",
        lambda: to_nothing(setting.frame(stream, "none")),
        lambda: to_nothing(setting.spark.read.parquet(str(plain))),
        limit=1.5,
        goal=1.0,
    )


def _small_tables() -> Iterator[pa.Table]:
    for i in range(SMALL_APPENDS):
        ids = range(i * SMALL_ROWS, (i + 1) * SMALL_ROWS)
        yield pa.table({
            "id": list(ids), "key": [f"key-{n % 997}" for n in ids],
            "value": [n / 7 for n in ids], "payload": [f"payload of {n}" for n in ids],
        })  # fmt: skip


FIGURES = {
    name: partial(read, name=name, order=order, limit=limit, goal=goal)
    for name, order, limit, goal in (
        ("shapes/read-one-segment", "none", 1.5, 1.15),
        ("shapes/read-one-segment-write-order", "stream", 2.0, 1.3),
        ("shapes/read-one-segment-by-segment", "segment", 2.0, 1.3),
    )
} | {"shapes/append-one-segment": append, "shapes/many-small": many_small}
