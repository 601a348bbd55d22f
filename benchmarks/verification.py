"""What verifying files costs, and what digests add to an append."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from sqlalchemy import text

from benchmarks.data_path import appender, opened, to_nothing
from benchmarks.figure import Figure
from benchmarks.files import small_files
from benchmarks.setting import Setting, in_bulk
from spark_jobs.verify import contents_by
from weir.annex.verification.footers import THREADS
from weir.annex.verification.footers_in_tasks import looker
from weir.annex.verification.prove import prove
from weir.annex.verification.verify import Verified, verify
from weir.controller.streams import create_stream
from weir.kernel import writer
from weir.model.names import StreamName, stream_name
from weir.retention.capture import capture
from weir.spark.appends import tasks


def _rows(setting: Setting) -> DataFrame:
    """Return rows as of a table of orders: numbers, texts, a price and a time."""
    return setting.spark.range(4_000_000 if setting.full else 1_000_000).selectExpr(
        "id", "concat('key-', id % 9973) AS key", "id % 100 AS amount", "id / 7 AS price",
        "concat('payload of ', id) AS payload", "id % 3 = 0 AS paid",
        "timestamp_micros(1700000000000000 + id * 1000) AS at",
    )  # fmt: skip


def _stream(setting: Setting, segments: int) -> StreamName:
    name = stream_name(f"bench/verified{setting.number()}")
    create_stream(
        setting.database, name, routing_key="key", segments=segments, request_id=str(name)
    )
    return name


def _appending(setting: Setting, rows: DataFrame, *, hashed: bool) -> Callable[[], None]:
    """Return what appends the rows to a stream of four segments, with digests or without."""
    name = _stream(setting, 4)

    def run() -> None:
        real = tasks._write_below
        tasks._write_below = real if hashed else _unhashed(real)
        try:
            appender(setting).append_frame(
                name, rows, writer_id="bench", batch_id=str(time.monotonic())
            )
        finally:
            tasks._write_below = real

    return run


def _unhashed(write: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a task does without hashing its rows."""

    def written(*given: Any, **more: Any) -> Any:
        hashes = vars(writer)["row_hashes"]
        vars(writer)["row_hashes"] = lambda batch, *_: np.zeros(batch.num_rows, np.uint64)
        try:
            return write(*given, **more)
        finally:
            vars(writer)["row_hashes"] = hashes

    return written


def digests(setting: Setting) -> Figure:
    """Return the figure of an append with Spark with digests, beside one without."""
    rows = _rows(setting).localCheckpoint()
    return Figure(
        "files/digest",
        f"an append of {rows.count():,} rows to four segments with digests, beside one without",
        _appending(setting, rows, hashed=True),
        _appending(setting, rows, hashed=False),
        limit=1.05,
        warm_up=2,
    )


def footers(setting: Setting) -> Figure:
    """Return the figure of verifying sizes and footers, beside reading the footers with pyarrow."""
    name, files = small_files(setting)
    paths = _paths(setting, name)

    def ours() -> None:
        _right(verify(opened(setting), stream=str(name), contents=None), files)

    def reference() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            assert sum(footer.num_rows for footer in pool.map(pq.read_metadata, paths))

    return Figure(
        "files/verify",
        f"sizes and footers of {files:,} files verified, beside reading the footers with pyarrow",
        ours,
        reference,
        limit=1.3,
    )


def proof(setting: Setting) -> Figure:
    """Return the figure of proving a cut after many new files, beside reading their footers with
    pyarrow."""
    name, files = small_files(setting)
    paths, app = _paths(setting, name), opened(setting)
    app = replace(app, settings=replace(app.settings, verify_bytes=0))
    capture(app.database)

    def ours() -> None:
        in_bulk(
            app.database,
            "UPDATE stream_cut SET proven_at = NULL; UPDATE verification SET proven_clock = NULL",
        )
        while (done := prove(app, looker(lambda: setting.spark))).behind:
            pass
        _right(done.seen, done.seen.files)

    def reference() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            assert sum(footer.num_rows for footer in pool.map(pq.read_metadata, paths))

    return Figure(
        "files/prove",
        f"a cut proven after {files:,} new files in one Spark job, beside reading their footers "
        "with pyarrow",
        ours,
        reference,
        limit=2.5,
    )


def contents(setting: Setting) -> Figure:
    """Return the figure of verifying contents with Spark, beside a native scan."""
    name = _stream(setting, 4)
    rows = _rows(setting)
    appender(setting).append_frame(name, rows, writer_id="bench", batch_id="1")
    paths = _paths(setting, name)
    app = opened(setting)

    def ours() -> None:
        _right(verify(app, stream=str(name), contents=contents_by(app, "spark")), len(paths))

    return Figure(
        "files/verify_contents",
        f"the contents of {len(paths)} files of one append verified with Spark, beside a native "
        "scan of all columns",
        ours,
        lambda: to_nothing(setting.spark.read.parquet(*paths)),
        limit=1.3,
        warm_up=2,
    )


def _paths(setting: Setting, name: StreamName) -> list[str]:
    rows = setting.database.transaction(
        lambda c: c.execute(
            text("SELECT path FROM weir.data_files WHERE stream = :n"), {"n": str(name)}
        ).all()
    )
    return [f"{setting.settings.warehouse}/{row.path}" for row in rows]


def _right(done: Verified, files: int) -> None:
    assert (done.files, done.error()) == (files, None)


FIGURES = {
    "files/digest": digests,
    "files/verify": footers,
    "files/prove": proof,
    "files/verify_contents": contents,
}
