"""When an audit looks, how it is to be planned, and what it records. Made by `make queries` from sql/annex/audit/queries/run.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

MOMENT = text(
    """SELECT transaction_timestamp() AS now, (
    SELECT a.started_at FROM audit a
    WHERE a.number = (SELECT max(number) FROM audit WHERE proven)) AS since,
    (SELECT count(*) FROM reader_group) AS groups"""
)


class Moment(NamedTuple):
    """A row of `moment`."""

    now: datetime
    since: datetime | None
    groups: int


def moment(connection: Connection) -> Moment:
    """Return the moment that the snapshot sees, and the one that the last proven audit saw."""
    result = connection.execute(MOMENT)
    row = result.one()
    return Moment._make(row)


CLOCKS = text("""SELECT stream_id, last_clock FROM stream WHERE state <> 'deleted'""")


class StreamClock(NamedTuple):
    """A row of `clocks`."""

    stream_id: int
    last_clock: int


def clocks(connection: Connection) -> list[StreamClock]:
    """Return the last clock of each stream."""
    result = connection.execute(CLOCKS)
    return [StreamClock._make(row) for row in result]


PLAN_FOR = text(
    """SELECT set_config('work_mem', '128MB', true), set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', CASE WHEN :everything THEN '4' ELSE '0' END, true),
    set_config('min_parallel_table_scan_size', '1MB', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_nestloop', CASE WHEN :all_rows THEN 'off' ELSE 'on' END, true),
    set_config('enable_seqscan', CASE WHEN :all_rows THEN 'on' ELSE 'off' END, true)"""
)


def plan_for(connection: Connection, *, everything: bool, all_rows: bool) -> None:
    """Say how the statements that follow join: all rows by hashes, in memory; a table of which only new rows are asked, by its indexes. Postgres knows of no stream how much there is of it. Several processes are worth it only for all rows."""
    result = connection.execute(PLAN_FOR, {"everything": everything, "all_rows": all_rows})
    result.close()


ONE_AT_A_TIME = text("""SELECT FROM installation FOR NO KEY UPDATE""")


def one_at_a_time(connection: Connection) -> None:
    """Wait until no other audit is being recorded."""
    result = connection.execute(ONE_AT_A_TIME)
    result.close()


RECORD = text(
    """WITH made AS (
    INSERT INTO audit (started_at, since, files, proven, streams, reader_groups, lost_events)
    SELECT :started, :since, :files, :proven, :streams, :groups, :lost
    WHERE NOT EXISTS (SELECT FROM audit WHERE started_at = :started)
), before AS (
    DELETE FROM counter_example
)
INSERT INTO counter_example (kind, stream_id, group_id, what)
SELECT c.kind, s.stream_id, g.group_id, c.what
FROM jsonb_to_recordset(CAST(:found AS jsonb))
    AS c (kind text, stream text, reader_group text, what text)
LEFT JOIN stream s ON s.stream_name = c.stream AND s.state <> 'deleted'
LEFT JOIN reader_group g ON g.name = c.reader_group"""
)


def record(
    connection: Connection,
    *,
    started: datetime,
    since: datetime | None,
    files: bool,
    proven: bool,
    streams: int,
    groups: int,
    lost: int,
    found: str,
) -> None:
    """Record an audit, which is known by the moment that it looked at, and what it found."""
    result = connection.execute(
        RECORD,
        {
            "started": started,
            "since": since,
            "files": files,
            "proven": proven,
            "streams": streams,
            "groups": groups,
            "lost": lost,
            "found": found,
        },
    )
    result.close()


PROVEN = text(
    """INSERT INTO audited_stream AS a (stream_id, clock)
SELECT n.stream_id, n.clock
FROM unnest(CAST(:ids AS bigint[]), CAST(:clocks AS bigint[])) AS n (stream_id, clock)
LEFT JOIN audited_stream b USING (stream_id)
WHERE b.clock IS NULL OR b.clock < n.clock
ON CONFLICT (stream_id) DO UPDATE SET clock = greatest(a.clock, excluded.clock)"""
)


def proven(connection: Connection, *, ids: Sequence[int], clocks: Sequence[int]) -> None:
    """Record up to which clock of each stream all is proven."""
    result = connection.execute(PROVEN, {"ids": list(ids), "clocks": list(clocks)})
    result.close()
