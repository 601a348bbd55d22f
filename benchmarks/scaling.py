"""Runs of scaling by load: over many streams beside few, and with nothing moved beside nothing.

Streams and their commits are rows, written in bulk; splits are into equal ranges, so that only the
run's own work is timed.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from spark_jobs import scale
from tests.watching import count_statements
from tests.world.jobs import main
from weir.database.connection import Database
from weir.model.key_space import KeyRange, even_split
from weir.model.split_points import Found, HotSegment, SplitPoints
from weir.operations.action import Job
from weir.scaling.run import scale_by_load

FEW = 100
SEGMENTS = 10  # per stream
IDLE_RUNS = 10

# Each segment gets 70 events per second, one of a hundred 150, committed every half hour.
_STREAMS = """
INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
                    next_segment_number, last_clock, head, scaling, target_rate, scale_factor)
SELECT 'bench', 's' || i, 'key', 'fail', 'fail', 'consumed', :segments,
       time_clock(now()), '{}', 'event_rate', 100, 2
FROM generate_series(1, :count) i;
INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, request_id)
SELECT stream_id, stream_name, 0, 0, last_clock - CAST(12000000000 AS bigint), 'create', ''
FROM stream;
INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
SELECT stream_id, stream_name, i, i / CAST(:segments AS float), (i + 1) / CAST(:segments AS float)
FROM stream, generate_series(0, :segments - 1) i;
INSERT INTO segment_tail (stream_id, segment_id) SELECT stream_id, segment_id FROM segment;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT s.stream_id, s.stream_name, g.segment_id, k,
       1800 * CASE WHEN g.segment_id = 0 AND s.stream_id % 10 = 0 THEN 150 ELSE 70 END, 0, 1,
       s.last_clock - k * CAST(1800000000 AS bigint), k
FROM stream s JOIN segment g USING (stream_id), generate_series(0, 5) k;
"""
_AS_BEFORE = """
DELETE FROM scale_decision;
DELETE FROM scale_evaluation;
DELETE FROM request;
DELETE FROM segment_tail WHERE segment_id >= 4294967296;
DELETE FROM segment WHERE segment_id >= 4294967296;
INSERT INTO segment_tail (stream_id, segment_id)
SELECT stream_id, segment_id FROM segment WHERE sealed_epoch IS NOT NULL;
UPDATE segment SET sealed_epoch = NULL, sealed_clock = NULL, events = NULL, bytes = NULL
WHERE sealed_epoch IS NOT NULL;
DELETE FROM epoch WHERE epoch > 0;
UPDATE stream SET current_epoch = 0, next_segment_number = :segments,
    last_clock = (SELECT max(clock) FROM time_index) WHERE current_epoch > 0;
"""


def _database(setting: Setting, streams: int) -> Database:
    """Return the database of so many streams, which all figures share."""
    return setting.filled(f"scaling_{streams}", _STREAMS, count=streams, segments=SEGMENTS)


def _halves(hot: Sequence[HotSegment]) -> Found:
    points = {}
    for one in hot:
        ranges = even_split(one.pieces, KeyRange(one.segment.key_low, one.segment.key_high))
        inner = tuple(low for low, _ in ranges[1:])
        points[one.stream_id, one.segment.segment_id] = SplitPoints(inner, (), ())
    return Found(points, {})


def evaluate(setting: Setting) -> Figure:
    """Return the figure of one run over many streams that have all moved, beside few. One segment
    in a hundred is hot."""
    setting.durable(False)
    many = setting.many_streams

    def run(streams: int) -> float:
        database = _database(setting, streams)
        counted = count_statements(database)
        start = time.perf_counter()
        reports = scale_by_load(database, _halves, request_id="bench")
        spent = time.perf_counter() - start
        split = sum(one["action"] == "split" for one in reports)
        assert split == streams * SEGMENTS // 100, f"{split} were split"
        # One statement reads, one records, and a few change each stream that is split.
        assert len(counted) <= 2 + 7 * split, len(counted)
        in_bulk(database, _AS_BEFORE, segments=SEGMENTS)
        setting.server.psql("VACUUM ANALYZE", f"scaling_{streams}")
        return spent / streams

    return Figure(
        "scale/evaluate",
        f"seconds per stream of one run over {many:,} streams with {many * SEGMENTS:,} segments, "
        f"of which 1 % are hot, beside {FEW} with {FEW * SEGMENTS:,}",
        partial(run, many),
        partial(run, FEW),
        limit=1.2,
        runs=3,
        unit="s per stream",
    )


def idle(setting: Setting) -> Figure:
    """Return the figure of the whole job over streams that have not moved, beside a job that does
    nothing. Neither starts a JVM."""
    setting.durable(False)
    many = setting.many_streams
    database = _database(setting, many)
    environment = {
        "WEIR_STATE": str(setting.folder),
        "WEIR_DATABASE": setting.server.dsn(f"scaling_{many}", "weir_app"),
    }

    def run(work: Callable[[Job, Any], Mapping[str, Any]]) -> float:
        scale_by_load(database, _halves, request_id="at rest")  # splits what is hot
        scale_by_load(database, _halves, request_id="at rest")
        os.environ.update(environment)
        with contextlib.redirect_stdout(sys.stderr):
            start = time.perf_counter()
            for _ in range(IDLE_RUNS):
                assert main("scale", work, ["--arguments", "{}"]) == 0
            return (time.perf_counter() - start) / IDLE_RUNS

    return Figure(
        "scale/idle",
        f"weir_scale over {many:,} streams of which none has moved beside a job that does nothing",
        partial(run, scale.run),
        partial(run, lambda _job, _arguments: {}),
        limit=1.5,
        unit="s per run",
    )


FIGURES = {"scale/evaluate": evaluate, "scale/idle": idle}
