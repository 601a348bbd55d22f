"""The periodic jobs over many streams beside few, and over many at rest beside none; and deleting.

Streams, groups and what they do are rows, written in bulk; only the jobs' own work is timed.
"""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import fs
from sqlalchemy import text

from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from spark_jobs import checkpoints
from spark_jobs.checkpoints import Checkpoints
from weir.annex.verification.prove import prove
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.installation.opened import Installation
from weir.operations.action import Job
from weir.pages.metrics import as_text, rows_of
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.retention.capture import capture
from weir.retention.garbage import sweep
from weir.retention.release import read_alerts
from weir.retention.run import retain
from weir.settings import Settings
from weir.spark.base.delete import deleter

RunOnce = Callable[[Database, str], Any]  # with the warehouse
FEW = 100
SUBSCRIBERS = 3
IDLE_RUNS = 50  # so that a run takes long enough to be timed

_STREAMS = """
INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
                    next_segment_number, last_clock, head)
SELECT 'bench', 's' || i, 'key', 'fail', 'fail', 'consumed', 1, 1, '{"0.0": 0}'
FROM generate_series(1, :count) i;
INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, request_id)
SELECT stream_id, stream_name, 0, 0, 1, 'create', '' FROM stream;
INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
SELECT stream_id, stream_name, 0, 0, 1 FROM stream;
INSERT INTO segment_tail (stream_id, segment_id) SELECT stream_id, 0 FROM stream;
INSERT INTO reader_group (name, subscriber, on_gap, checkpointed_at)
SELECT s.name || '-' || i, true, 'fail', 'infinity' FROM stream s, generate_series(1, :groups) i;
INSERT INTO reader_group_stream (group_id, stream_id, start_cut, released_cut, released_at)
SELECT g.group_id, s.stream_id, '{"0.0": 0}', '{"0.0": 0}', clock_timestamp()
FROM reader_group g JOIN stream s ON s.name = split_part(g.name, '-', 1);
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT group_id, stream_id, 0, 'unassigned', 0 FROM reader_group_stream;
"""
# Ten events for each stream, read by all its groups.
_MOVED = """
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, state, epoch, opened_at, lease_until, ended_at, clock, events, bytes, files,
    allow_repeated_files, source)
SELECT stream_id, stream_name, next_transaction_number, 'w',
    next_transaction_number::text, '', 'committed', 0,
    clock_timestamp(), clock_timestamp(), clock_timestamp(), last_clock + 1, 10, 100, 1, false, ''
FROM stream;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT s.stream_id, s.stream_name, 0, t.tail_offset, 10, 100, s.next_transaction_number, 0, 9, 0,
    s.stream_id || '/' || t.tail_offset
FROM stream s JOIN segment_tail t USING (stream_id);
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT s.stream_id, s.stream_name, 0, t.tail_offset, 10, t.tail_bytes, 100, s.last_clock + 1,
    s.next_transaction_number
FROM stream s JOIN segment_tail t USING (stream_id);
UPDATE stream SET last_clock = last_clock + 1,
    next_transaction_number = next_transaction_number + 1;
UPDATE segment_tail SET tail_offset = tail_offset + 10, tail_bytes = tail_bytes + 100;
UPDATE reader_group_segment SET next_offset = next_offset + 10;
"""
_MARKED = "INSERT INTO capture_queue (stream_id) SELECT stream_id FROM stream;"
_GROUPS_MOVED = (
    "UPDATE reader_group SET moved_at = clock_timestamp(), checkpointed_at = '-infinity';"
)
_PUBLISHED = """
UPDATE reader_group_stream gs SET released_cut = tail_cut(gs.stream_id);
INSERT INTO retention_queue (stream_id, due_at) SELECT stream_id, clock_timestamp() FROM stream;
"""
_AT_REST = """
DELETE FROM capture_queue;
DELETE FROM retention_queue;
UPDATE reader_group SET checkpointed_at = 'infinity';
"""


def _database(setting: Setting, streams: int) -> Database:
    """Return the database of so many streams, which all figures share."""
    return setting.filled(f"control_{streams}", _STREAMS, count=streams, groups=SUBSCRIBERS)


def _warehouse(setting: Setting, streams: int) -> str:
    return setting.warehouse_of(f"control_{streams}")


def busy(name: str, prepare: str, job: RunOnce, setting: Setting) -> Figure:
    """Return the figure of one run that has something to do for every stream: the seconds per
    stream, of many streams beside few."""
    setting.durable(False)
    many = setting.many_streams

    def run(streams: int) -> float:
        database = _database(setting, streams)
        in_bulk(database, _MOVED + prepare)
        start = time.perf_counter()
        job(database, _warehouse(setting, streams))
        spent = time.perf_counter() - start
        in_bulk(database, _AT_REST)
        setting.server.psql("VACUUM ANALYZE", f"control_{streams}")
        return spent / streams

    return Figure(
        name,
        f"seconds per stream of one run over {many:,} streams with {SUBSCRIBERS} subscribers each, "
        f"all of which moved, beside {FEW}",
        partial(run, many),
        partial(run, FEW),
        limit=1.2,
        runs=3,
        unit="s per stream",
    )


def together(setting: Setting) -> Figure:
    """Return the figure of checkpoints of all groups, many in a transaction, beside one group after
    the other."""
    setting.durable(False)
    streams = FEW

    def run(checkpoints_of: Callable[[Database], object]) -> float:
        database = _database(setting, streams)
        in_bulk(database, _MOVED + _GROUPS_MOVED)
        start = time.perf_counter()
        checkpoints_of(database)
        spent = time.perf_counter() - start
        in_bulk(database, _AT_REST)
        setting.server.psql("VACUUM ANALYZE", f"control_{streams}")
        return spent / streams

    def one_by_one(database: Database) -> None:
        names = database.transaction(
            lambda c: c.execute(text("SELECT name FROM reader_group ORDER BY group_id")).scalars()
        )
        for name in names:
            assert checkpoint(database, name) is not None

    return Figure(
        "control/checkpoints-together",
        f"seconds per stream to checkpoint {SUBSCRIBERS} subscribers of each of {streams} streams, "
        "all of which moved, beside one group after the other",
        partial(run, checkpoint_all),
        partial(run, one_by_one),
        limit=1 / 3,
        unit="s per stream",
    )


def idle(what: str, job: RunOnce, setting: Setting) -> Figure:
    """Return the figure of one run over many streams in which there is nothing to do, beside one
    over none."""
    setting.durable(False)
    many = setting.many_streams

    def run(streams: int) -> float:
        database = _database(setting, streams)
        in_bulk(database, _AT_REST)
        start = time.perf_counter()
        for _ in range(IDLE_RUNS):
            job(database, _warehouse(setting, streams))
        return (time.perf_counter() - start) / IDLE_RUNS

    return Figure(
        f"control/{what}-idle",
        f"one run over {many:,} streams at rest beside one over none",
        partial(run, many),
        partial(run, 0),
        limit=1.5,
        unit="s per run",
    )


def deletion(setting: Setting) -> Figure:
    """Return the figure of deleting small files, beside a loop of the same library."""
    setting.durable(False)
    count = 100_000 if setting.full else 5_000
    database = _database(setting, 0)

    def files() -> tuple[Path, list[str]]:
        root = setting.folder / f"delete-{setting.number()}"
        paths = [f"1/_weir_tx={i // 100}/_weir_segment={i % 10}/{i}.parquet" for i in range(count)]
        for folder in {Path(path).parent for path in paths}:
            (root / folder).mkdir(parents=True)
        for path in paths:
            (root / path).write_bytes(b"rows")
        return root, paths

    def ours() -> float:
        root, paths = files()
        in_bulk(
            database,
            """INSERT INTO garbage (root, path, reason, garbage_since)
            SELECT '', p, 'truncated', clock_timestamp() - interval '1 day'
            FROM unnest(CAST(:paths AS text[])) p""",
            paths=paths,
        )
        setting.spark.range(1).count()  # start the session before the time is taken
        start = time.perf_counter()
        done = sweep(database, str(root), 0.0, deleter(lambda: setting.spark), output_roots=())
        spent = time.perf_counter() - start
        assert done["deleted"] == count, done
        shutil.rmtree(root)
        return spent

    def plain() -> float:
        root, paths = files()
        system = fs.LocalFileSystem()
        start = time.perf_counter()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda path: system.delete_file(f"{root}/{path}"), paths))
        spent = time.perf_counter() - start
        shutil.rmtree(root)
        return spent

    return Figure(
        "control/delete",
        f"{count:,} files of garbage, with the rows that say so, beside removing them in a plain "
        "parallel loop of the same library",
        ours,
        plain,
        limit=1.5,
        runs=3,
    )


def _cuts(database: Database, warehouse: str) -> None:
    """Run what weir_stream_cuts does, except for reading files (the figure `files/prove`)."""
    capture(database)
    app = Installation(Settings(warehouse=warehouse, verify_bytes=0), database)
    prove(app, lambda _, files: [[] for _ in files])


def _checkpoints(database: Database, warehouse: str) -> None:
    """Run the whole job weir_checkpoints."""
    settings = Settings(warehouse=warehouse)
    job = Job("checkpoints", RunId("bench", "bench", "bench"), settings, database)
    checkpoints.run(job, Checkpoints())


def _retention(database: Database, _warehouse: str) -> None:
    """Run what weir_retention does, except for deleting, which has a figure of its own."""
    read_alerts(database, [one["stream"] for one in retain(database)])


def _metrics(database: Database, _warehouse: str) -> None:
    as_text(rows_of(database))


_JOBS: dict[str, tuple[str, RunOnce]] = {
    "cuts": (_MARKED, _cuts),
    "checkpoints": (_GROUPS_MOVED, _checkpoints),
    "retention": (_PUBLISHED, _retention),
}
FIGURES = {
    **{f"control/{what}": partial(busy, f"control/{what}", *how) for what, how in _JOBS.items()},
    "airflow/metrics": partial(busy, "airflow/metrics", "", _metrics),
    **{f"control/{what}-idle": partial(idle, what, how[1]) for what, how in _JOBS.items()},
    "control/checkpoints-together": together,
    "control/delete": deletion,
}
