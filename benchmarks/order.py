"""What order costs: planning a batch in write order, and aligned batches; without reading them."""

import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import psycopg2

from benchmarks.batches import LEASE, ROWS, Stream
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.reader_groups.batches.alignment import end_of_run
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.lifecycle import commit_batch, open_in
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join

MANY = 1000  # segments
STREAMS = 8
ALL = Budget(10**12, 10**15, 10**9)


class _Undone(Exception):
    """Undoes a transaction that was only to be measured."""


def plan(setting: Setting) -> Figure:
    """Return the figure of opening a batch of a large backlog, beside one of a small backlog with
    the same budget."""
    setting.durable(True)
    many, few = 10_000 if setting.full else 400, 10
    opens, commits = 5, 4
    budget = Budget(commits * MANY * ROWS, 10**15, commits * MANY)

    def side(backlog: int) -> Callable[[], float]:
        stream = Stream.made(setting, MANY)
        _fill(setting, stream, backlog)
        group = stream.made_group()
        token = join(setting.database, group, "reader", LEASE)

        def once(connection: Any) -> None:
            batch = open_in(
                connection, group, "reader", token, Reading(budget, "stream"), lease=LEASE
            )
            assert batch is not None
            assert batch.events == budget.events
            raise _Undone

        def run() -> float:
            seconds = 0.0
            for _ in range(opens):
                start = time.perf_counter()
                try:
                    setting.database.transaction(once)
                except _Undone:
                    seconds += time.perf_counter() - start
            return seconds

        return run

    return Figure(
        "order/plan",
        f"{opens} times opening a batch of {budget.events:,} events in write order, of {MANY:,} "
        f"segments with a backlog of {many:,} commits each, beside one of {few}",
        side(many),
        side(few),
        limit=1.5,
    )


def _fill(setting: Setting, stream: Stream, commits: int) -> None:
    """Insert `commits` commits, each with a file in every segment that is only a name."""
    connection = psycopg2.connect(setting.server.dsn("weir", "postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = weir_internal, weir")
        cursor.execute("SET session_replication_role = replica")  # no look-up of 40 million keys
        cursor.execute(_COMMITS, {"s": stream.stream_id, "n": commits, "m": MANY, "rows": ROWS})
        cursor.execute("VACUUM (ANALYZE) transaction, data_file, time_index, segment_tail, stream")
    connection.close()


# Commit i, of n, writes to each of m segments: one after the other, as one task writes them.
_COMMITS = """
INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id, batch_id,
    fingerprint, state, epoch, opened_at, lease_until, ended_at, clock, events, bytes, files,
    allow_repeated_files, source)
SELECT stream_id, stream_name, i + 1, 'bulk', i::text, '', 'committed', 0, clock_time(last_clock),
       clock_time(last_clock), clock_time(last_clock), last_clock - (%(n)s - i) * 1000000::bigint,
       %(m)s * %(rows)s, 10 * %(m)s * %(rows)s, %(m)s, false, 'bench'
FROM stream, generate_series(0, %(n)s - 1) i WHERE stream_id = %(s)s;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, g, i * %(rows)s, %(rows)s, 10 * %(rows)s, i + 1, g * %(rows)s,
       (g + 1) * %(rows)s - 1, 1, %(s)s || '/' || g || '/' || i
FROM stream, generate_series(0, %(m)s - 1) g, generate_series(0, %(n)s - 1) i
WHERE stream_id = %(s)s;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, g, i * %(rows)s, %(rows)s, 10 * i * %(rows)s, 10 * %(rows)s,
       last_clock - (%(n)s - i) * 1000000::bigint, i + 1
FROM stream, generate_series(0, %(m)s - 1) g, generate_series(0, %(n)s - 1) i
WHERE stream_id = %(s)s;
UPDATE segment_tail SET tail_offset = %(n)s * %(rows)s, tail_bytes = 10 * %(n)s * %(rows)s
WHERE stream_id = %(s)s;
UPDATE stream SET next_transaction_number = %(n)s + 1 WHERE stream_id = %(s)s;
"""


def aligned(setting: Setting) -> Figure:
    """Return the figure of an aligned batch of several streams, beside a batch of each stream."""
    setting.durable(True)
    batches = 5
    streams = [Stream.made(setting, 10) for _ in range(STREAMS)]

    def group_of(members: list[Stream], *, aligned: bool) -> tuple[str, int]:
        name = f"bench-{setting.number()}"
        create_reader_group(
            setting.database, name, [stream.name for stream in members], aligned=aligned,
            start="tail", request_id=name,
        )  # fmt: skip
        return name, join(setting.database, name, "reader", LEASE)

    def side(groups: list[tuple[str, int]]) -> Callable[[], float]:
        def run() -> float:
            seconds = 0.0
            for _ in range(batches):
                for stream in streams:
                    stream.append()
                start = time.perf_counter()
                for name, token in groups:
                    _read_one(setting, name, token)
                seconds += time.perf_counter() - start
            return seconds

        return run

    together = group_of(streams, aligned=True)
    single = [group_of([stream], aligned=False) for stream in streams]
    quiet, closing = _append_times(setting, streams[0], together[0])
    return Figure(
        "order/aligned",
        f"{batches} times closing, opening and committing an aligned batch of {STREAMS} streams of "
        "10 segments each, beside a batch of each stream",
        side([together]),
        side(single),
        limit=1.3,
        notes={"ms_to_append": round(1000 * quiet, 2),
               "ms_to_append_while_it_is_closed_all_the_time": round(1000 * closing, 2)},
    )  # fmt: skip


def _read_one(setting: Setting, name: str, token: int) -> None:
    """Open and commit one batch that holds everything, as a run does."""
    until, closed = setting.database.transaction(lambda c: end_of_run(c, name))
    batch = setting.database.transaction(
        lambda c: open_in(
            c, name, "reader", token, Reading(ALL), lease=LEASE, until=until, closed=closed
        )
    )
    assert batch is not None
    commit_batch(setting.database, batch, lease=LEASE)


def _append_times(setting: Setting, stream: Stream, group: str) -> tuple[float, float]:
    """Return the median seconds of an append to a stream: alone, and while an aligned group closes
    the stream again and again."""
    over = threading.Event()

    def close() -> None:
        while not over.is_set():
            setting.database.transaction(lambda c: end_of_run(c, group))

    def appends() -> float:
        times = []
        for _ in range(30):
            start = time.perf_counter()
            stream.append()
            times.append(time.perf_counter() - start)
        return median(times)

    appends()
    quiet = appends()
    thread = threading.Thread(target=close)
    thread.start()
    try:
        return quiet, appends()
    finally:
        over.set()
        thread.join()


FIGURES = {"order/plan": plan, "order/aligned": aligned}
