"""What it costs to find events by their keys, and to write files without them."""

import shutil
from itertools import count

from pyspark.sql import functions as F

from benchmarks.data_path import appender, opened, to_nothing
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.annex.erasure.find import places, with_keys
from weir.annex.erasure.records import Asked, Offsets
from weir.annex.erasure.run import erase
from weir.arrow.append import append_table
from weir.controller.read_plan import Slices, plan_of_stream
from weir.controller.streams import create_stream
from weir.kernel.matching import in_columns
from weir.model.names import StreamName, stream_name
from weir.queries.annex.erasure.records import Erased
from weir.spark.reads.frames import frame_of

KEYS = 10_000


def _found(setting: Setting, name: StreamName, keys: list[str]) -> dict[int, Offsets]:
    _, slices, fields = setting.database.snapshot(lambda c: plan_of_stream(c, name))
    match = in_columns(["key"], keys)
    return places(setting.settings, with_keys(slices, keys), fields, match)


def _erased(setting: Setting, name: StreamName, keys: list[str]) -> Erased:
    def find():  # type: ignore[no-untyped-def]
        return _found(setting, name, keys)

    asked = Asked("bench", "a figure", {})
    return erase(setting.database, setting.settings, name, asked, find)


def rewrite(setting: Setting) -> Figure:
    """Return the figure of erasing 1 % of the keys, beside Spark reading and writing the files."""
    events = 5_000_000 if setting.full else 1_000_000
    name = stream_name(f"bench/erased{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=4, request_id=str(name))
    rows = setting.spark.range(events).selectExpr(
        "id", f"concat('key-', id % {KEYS}) AS key", "id / 7 AS price",
        "concat('payload of ', id) AS payload", "timestamp_micros(1700000000000000 + id) AS at",
    )  # fmt: skip
    appender(setting).append_frame(name, rows, writer_id="bench", batch_id="1")
    plain, next_keys, next_too = setting.folder / "plain erased", count(), count()

    def keys_of(number: int) -> list[str]:
        return [f"key-{number * KEYS // 100 + i}" for i in range(KEYS // 100)]

    def ours() -> None:
        done = _erased(setting, name, keys_of(next(next_keys)))
        assert done.events == events // 100, done

    def reference() -> None:
        _, slices, _ = setting.database.snapshot(lambda c: plan_of_stream(c, name))
        shutil.rmtree(plain, ignore_errors=True)
        paths = [f"{setting.settings.warehouse}/{one.path}" for one in slices]
        kept = ~F.col("key").isin(*keys_of(next(next_too)))
        setting.spark.read.parquet(*paths).where(kept).write.parquet(str(plain))

    return Figure(
        "erase/rewrite",
        f"the events of 1 % of {KEYS:,} keys erased from {events:,} events, beside Spark reading "
        "the same files and writing plain files without them",
        ours, reference, limit=1.3, runs=3,
    )  # fmt: skip


def find(setting: Setting) -> Figure:
    """Return the figure of finding the events of one key, beside reading all."""
    segments, appends = (1_000, 10) if setting.full else (200, 10)
    name = stream_name(f"bench/found{setting.number()}")
    create_stream(
        setting.database, name, routing_key="key", segments=segments, request_id=str(name)
    )
    for i in range(appends):
        table = setting.spark.range(i * segments * 50, (i + 1) * segments * 50).selectExpr(
            "id", f"concat('key-', id % {KEYS}) AS key", "id / 7 AS price"
        )
        append_table(
            opened(setting), str(name), table.toArrow(), writer_id="bench", batch_id=str(i)
        )
    planned = setting.database.snapshot(lambda c: plan_of_stream(c, name))

    def ours() -> None:
        assert (
            sum(map(len, _found(setting, name, ["key-77"]).values()))
            == segments * 50 * appends // KEYS
        )

    def reference() -> None:
        whole = Slices(str(name), *planned)
        to_nothing(frame_of(setting.spark, setting.settings, whole, order="none"))

    return Figure(
        "erase/find",
        f"the events of one key found among {len(planned[1]):,} files of {segments:,} segments, "
        "beside reading all",
        ours, reference, limit=0.1,
    )  # fmt: skip


FIGURES = {"erase/rewrite": rewrite, "erase/find": find}
