"""Adjunct stores: a version of some changes beside a rebuild, an idle run, and a look-up."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.data_path import appender, opened
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from spark_jobs import adjunct
from tests.world.jobs import main
from weir.adjunct.lookup import look_up
from weir.adjunct.stores import define_store
from weir.controller.streams import create_stream
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import StreamName, stream_name
from weir.operations.action import Job
from weir.spark.adjuncts.build import build_version
from weir.warehouse.filesystem import filesystem

KEYS, CHANGES = 1_000_000, 100_000
STORES = 1_000
ROUNDS = 4  # how often each key has changed before
IDLE_RUNS = 10

# Stores each of whose streams has not moved since its newest version.
_STORES = """
INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
                    next_segment_number, last_clock, head)
SELECT 'bench', 's' || i, 'key', 'fail', 'fail', 'consumed', 1, time_clock(now()), '{}'
FROM generate_series(1, :count) i;
INSERT INTO reader_group (name, subscriber, on_gap) SELECT stream_name, true, 'fail' FROM stream;
INSERT INTO adjunct_store (name, stream_id, group_id, layout, bootstrap, missing, patience,
                           null_key, on_error, on_gap, keep_versions)
SELECT s.stream_name, s.stream_id, g.group_id, 'auto', 'batch', 'wait', 60, 'skip', 'fail', 'fail',
       86400
FROM stream s JOIN reader_group g ON g.name = s.stream_name;
INSERT INTO adjunct_definition (store_id, definition, key, key_type, value, value_columns,
                                delete_when)
SELECT store_id, 1, '', '', '', '', '' FROM adjunct_store;
INSERT INTO adjunct_version (store_id, version, definition, state, kind, from_cut, cut, clock,
    builder, started_at, published_at, superseded_at, fields, row_count)
SELECT a.store_id, v, 1, 'published', 'rebuilt', '{}', '{}', s.last_clock, 'bench', now(), now(),
       CASE WHEN v < 10 THEN now() END, '[]', 0
FROM adjunct_store a JOIN stream s USING (stream_id), generate_series(1, 10) v
"""


def changes(numbers: DataFrame, version: int) -> DataFrame:
    """Return a change for each number. The number is in the key; the value is the number times
    `version`."""
    return numbers.select(
        F.concat(F.lit("key-"), "id").alias("key"),
        (F.col("id") * version).alias("value"),
        F.concat(F.lit("payload of "), "id").alias("payload"),
    )


def stream_of_changes(setting: Setting, rounds: int) -> StreamName:
    """Return a new stream in which each of the `KEYS` keys has changed `rounds` times."""
    name = stream_name(f"bench/s{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=4, request_id=str(name))
    for number in range(rounds):
        rows = changes(setting.spark.range(KEYS), rounds - number)
        batch = f"round {number}"
        appender(setting).append_frame(name, rows, writer_id="bench", batch_id=batch)
    return name


def store(setting: Setting, stream: StreamName) -> str:
    """Define a new store over a stream, and return its name."""
    name = f"bench/store{setting.number()}"
    define_store(
        setting.database, name, stream, AdjunctConfiguration(), AdjunctDefinition(),
        request_id=name,
    )  # fmt: skip
    return name


def incremental(setting: Setting) -> Figure:
    """Return the figure of extending a version of a large store by some changes, beside rebuilding
    it from its stream."""
    stream = stream_of_changes(setting, ROUNDS)
    kept = store(setting, stream)
    build_version(opened(setting), kept)
    random = Random(18)

    def timed(name: str) -> float:
        start = time.perf_counter()
        build_version(opened(setting), name)
        return time.perf_counter() - start

    def ours() -> float:
        chosen = setting.spark.createDataFrame(
            pa.table({"id": random.sample(range(KEYS), CHANGES)})
        )
        rows = changes(chosen, setting.number())
        batch = f"changes {setting.number()}"
        appender(setting).append_frame(stream, rows, writer_id="bench", batch_id=batch)
        return timed(kept)

    return Figure(
        "adjunct/incremental",
        f"a version with {CHANGES:,} changes of {KEYS:,} keys beside the same version built from "
        f"the whole stream, in which each key had changed {ROUNDS} times",
        ours,
        lambda: timed(store(setting, stream)),
        limit=0.5,
        warm_up=2,  # with one, the compiler of the JVM is still at work (see data_path.read)
    )


def lookup(setting: Setting) -> Figure:
    """Return the figure of looking up one key of a large store, beside reading its whole table."""
    name = store(setting, stream_of_changes(setting, 1))
    version = build_version(opened(setting), name)
    warehouse = setting.settings.warehouse
    system, base = filesystem(warehouse)
    random = Random(18)

    def ours() -> None:
        key = random.randrange(KEYS)
        found = look_up(setting.database, warehouse, name, f"key-{key}")
        assert found is not None
        assert found["value"] == key

    def whole() -> None:
        paths = [f"{base}/{file.path}" for file in version.files]
        assert pq.read_table(paths, filesystem=system).num_rows == KEYS

    return Figure(
        "adjunct/lookup",
        f"looking up one of {KEYS:,} keys beside reading the version whole with pyarrow",
        ours,
        whole,
        limit=0.2,
    )


def idle(setting: Setting) -> Figure:
    """Return the figure of the whole job with no store to build, beside a job that does nothing.
    Neither starts a JVM."""
    setting.durable(False)
    setting.filled("adjunct", _STORES, count=STORES)
    environment = {
        "WEIR_STATE": str(setting.folder),
        "WEIR_DATABASE": setting.server.dsn("adjunct", "weir_app"),
    }

    def run(work: Callable[[Job, Any], Mapping[str, Any]]) -> float:
        os.environ.update(environment)
        with contextlib.redirect_stdout(sys.stderr):
            start = time.perf_counter()
            for _ in range(IDLE_RUNS):
                assert main("adjunct", work, ["--arguments", "{}"]) == 0
            return (time.perf_counter() - start) / IDLE_RUNS

    return Figure(
        "adjunct/idle",
        f"weir_adjunct with {STORES:,} stores of which none has to be built beside a job that does "
        "nothing",
        partial(run, adjunct.run),
        partial(run, lambda _job, _arguments: {}),
        limit=1.5,
        unit="s per run",
    )


FIGURES = {
    "adjunct/incremental": incremental,
    "adjunct/lookup": lookup,
    "adjunct/idle": idle,
}
