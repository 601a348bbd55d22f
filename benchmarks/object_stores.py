"""How many requests an object store gets, which takes money and time for each."""

import os
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from tests.warehouse.object_store import ObjectStore, object_store
from weir.controller.streams import create_stream
from weir.database import migrate
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.retention.garbage import sweep
from weir.retention.manual_truncation import truncate_before

MARKER = "weir/_weir_installation"
APPENDS = 3


def requests(setting: Setting, segments: int) -> Figure:
    """Return the figure of the requests of appends of 1,000 rows into a stream, and of the sweep
    after its truncation, beside the least: a file is written once, the marker read once for each
    append and for the sweep, an attempt's folder listed before its commit, the marker written once,
    and all files deleted at once. Nothing but the marker is left."""
    rows = pa.table({"k": [f"k{n}" for n in range(1000)], "n": range(1000)})
    least = APPENDS * (segments + 2) + 3

    def ours() -> float:
        number = setting.number()
        with object_store() as store:
            os.environ.update(store.environment)
            name = f"s3_{number}"
            setting.server.psql(
                f"CREATE DATABASE {name} OWNER weir_owner; GRANT CONNECT ON DATABASE {name} TO "
                "weir_app;"
            )
            migrate.upgrade(setting.server.dsn(name, "weir_owner"))
            there = replace(
                setting.settings, database=setting.server.dsn(name, "weir_app"),
                warehouse="s3a://lake/weir",
            )  # fmt: skip
            with Database.of(there) as database:
                return _asked(store, database, rows, segments, lambda batch: shared(there).append(
                    "s/s", rows, writer_id="me", batch_id=str(batch)
                ))  # fmt: skip

    return Figure(
        f"shapes/s3-requests-{segments}", f"requests of {APPENDS} appends of 1,000 rows into "
        f"{segments} segment(s) on S3, and of the sweep of them, beside the least possible", ours,
        lambda: float(least), limit=2.0, unit="requests", warm_up=0,
    )  # fmt: skip


def _asked(
    store: ObjectStore, database: Database, rows: pa.Table, segments: int,
    append: Callable[[int], object],
) -> float:  # fmt: skip
    create_stream(
        database, stream_name("s/s"), routing_key="k", segments=segments, request_id="create"
    )
    append(0)  # which writes the marker of the warehouse
    store.asked.clear()
    for batch in range(1, APPENDS + 1):
        append(batch)
    truncate_before(database, stream_name("s/s"), "tail", dry_run=False, request_id="truncate")
    assert (
        sweep(database, "s3a://lake/weir", 0.0, output_roots=())["deleted"]
        == (APPENDS + 1) * segments
    )
    assert store.objects.keys() == {MARKER}, store.objects.keys()
    return float(len(store.asked))


FIGURES = {
    "shapes/s3-requests-1": lambda setting: requests(setting, 1),
    "shapes/s3-requests-16": lambda setting: requests(setting, 16),
}
