"""What Airflow's triggerer asks of Postgres: the poll of the watcher over many streams beside few,
and that of many waiting sensors beside one."""

import time
from functools import partial

from benchmarks.control import FEW, _database
from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from weir.airflow.waiting import EVERY, answered
from weir.controller.announcements import announced as record
from weir.controller.announcements import to_announce
from weir.reader_groups.progress import Condition, progress_of

MOVED = 100
SENSORS = 1000
POLLS = 20
_WATCHED = """
INSERT INTO watch (stream_name, airflow, kind) SELECT stream_name, 'airflow', 'events' FROM stream
ON CONFLICT DO NOTHING
"""
# An append of ten events to some streams, as commits leave it.
_MOVED = """
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, state, epoch, opened_at, lease_until, ended_at, clock, events, bytes, files,
    allow_repeated_files, source)
SELECT stream_id, stream_name, next_transaction_number, 'w',
    next_transaction_number::text, '', 'committed', 0,
    clock_timestamp(), clock_timestamp(), clock_timestamp(), last_clock + 1, 10, 100, 1, false, ''
FROM stream WHERE stream_id <= :moved;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT s.stream_id, s.stream_name, 0, t.tail_offset, 10, t.tail_bytes, 100, s.last_clock + 1,
    s.next_transaction_number
FROM stream s JOIN segment_tail t USING (stream_id) WHERE stream_id <= :moved;
INSERT INTO announcement (airflow, kind, stream_name, stream_id, transaction_number)
SELECT 'airflow', 'events', stream_name, stream_id, next_transaction_number FROM stream
WHERE stream_id <= :moved;
UPDATE stream SET last_clock = last_clock + 1,
    next_transaction_number = next_transaction_number + 1 WHERE stream_id <= :moved;
UPDATE segment_tail SET tail_offset = tail_offset + 10, tail_bytes = tail_bytes + 100
WHERE stream_id <= :moved;
"""


def watch(setting: Setting) -> Figure:
    """Return the figure of a poll that announces what moved, of many watched streams beside few."""
    setting.durable(False)
    many = setting.many_streams
    for streams in (many, FEW):
        in_bulk(_database(setting, streams), _WATCHED)
        setting.server.psql("VACUUM ANALYZE", f"control_{streams}")

    def poll(streams: int) -> float:
        database, spent = _database(setting, streams), 0.0
        for _ in range(POLLS):
            in_bulk(database, _MOVED, moved=MOVED)
            begun = time.perf_counter()
            rows = to_announce(database, "airflow", [])
            record(database, "airflow", [(r.stream, n) for r in rows for n in r.transactions or ()])
            spent += time.perf_counter() - begun
            assert len(rows) == MOVED, len(rows)
        setting.server.psql("VACUUM ANALYZE", f"control_{streams}")
        return spent / POLLS

    return Figure(
        "airflow/watch",
        f"a poll that finds {MOVED} streams that have moved, and records that they are announced, "
        f"of {many:,} that are watched, beside {FEW}",
        partial(poll, many),
        partial(poll, FEW),
        limit=1.5,
        runs=3,
    )


def sensors(setting: Setting) -> Figure:
    """Return the figure of the polls of many waiting sensors beside those of one."""
    setting.durable(False)
    database = _database(setting, FEW)
    waiting = [Condition("group", "s1-1", until=10**17 + i) for i in range(SENSORS)]

    def polls(asked: list[Condition]) -> float:
        assert not answered(database, asked)
        things = {one.thing for one in asked}
        begun = time.perf_counter()
        for _ in range(round(60 / EVERY)):
            progress_of(database, things)
        return time.perf_counter() - begun

    return Figure(
        "airflow/sensors",
        f"what Postgres is asked in a minute for {SENSORS:,} sensors that wait until a group has "
        "read up to as many times, beside one of them",
        partial(polls, waiting),
        partial(polls, waiting[:1]),
        limit=1.5,
        runs=3,
    )


FIGURES = {"airflow/watch": watch, "airflow/sensors": sensors}
