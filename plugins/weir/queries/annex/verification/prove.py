"""Cuts that are to be proven, and the files before them. Made by `make queries` from sql/annex/verification/queries/prove.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

COMMITS = text(
    """WITH behind AS MATERIALIZED (
    SELECT * FROM unproven_cuts() u WHERE u.since < u.until
), commits AS (
    SELECT b.*, t.transaction_number, t.clock, t.files,
           sum(t.files) OVER (PARTITION BY b.stream_id ORDER BY t.clock) AS up_to
    FROM behind b LEFT JOIN LATERAL (
        SELECT t.transaction_number, t.clock, t.files FROM transaction t
        WHERE t.stream_name = b.stream_name AND clock_time(t.clock) > clock_time(b.since)
          AND clock_time(t.clock) <= clock_time(b.until)
        ORDER BY clock_time(t.clock) LIMIT CAST(:most AS bigint) + 1) t ON true
), judged AS (
    SELECT c.*, c.clock IS NULL OR sum(c.files) OVER (
        ORDER BY c.up_to, c.stream_id, c.clock) - c.files < :most AS taken
    FROM commits c
)
SELECT stream_id, coalesce(
           array_agg(transaction_number) FILTER (WHERE taken AND files > 0), '{}')
           AS numbers, stream_name,
       CASE WHEN bool_and(taken) AND count(clock) <= :most THEN until
            ELSE max(clock) FILTER (WHERE taken) END AS until
FROM judged GROUP BY stream_id, stream_name, judged.until ORDER BY stream_id"""
)


class Taken(NamedTuple):
    """Up to which clock a stream can be looked at, None if not at all."""

    stream_id: int
    numbers: list[int]
    stream_name: str
    until: int | None


def commits(connection: Connection, *, most: int) -> list[Taken]:
    """Return up to which clock each stream can be looked at in this run, and the appends with files. clock_time: of that there is an index. No join of what was found: Postgres can't know how many."""
    result = connection.execute(COMMITS, {"most": most})
    return [Taken._make(row) for row in result]


FILES = text(
    """SELECT f.stream_id, f.stream_name, f.segment_id, f.start_offset, f.events, f.bytes, f.first_seq, f.last_seq, f.schema_version, f.path,
    f.end_hash, f.file_hash, f.transaction_number IS NULL AS compacted, s.key_low, s.key_high,
    f.erased
FROM unnest(CAST(:names AS text[]), CAST(:numbers AS bigint[])) AS n (name, number)
JOIN data_file f ON f.stream_name = n.name AND f.transaction_number = n.number CROSS JOIN LATERAL (
    SELECT o.key_low, o.key_high FROM segment o
    WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s
ORDER BY f.stream_id, f.path"""
)


class NewFile(NamedTuple):
    """A row of `files`."""

    stream_id: int
    stream_name: str
    segment_id: int
    start_offset: int
    events: int
    bytes: int
    first_seq: int
    last_seq: int
    schema_version: int
    path: str
    end_hash: int | None
    file_hash: int | None
    compacted: bool
    key_low: float
    key_high: float
    erased: int


def files(connection: Connection, *, names: Sequence[str], numbers: Sequence[int]) -> list[NewFile]:
    """Return the files of some appends, by the names of their streams."""
    result = connection.execute(FILES, {"names": list(names), "numbers": list(numbers)})
    return [NewFile._make(row) for row in result]


DAMAGED = text("""SELECT DISTINCT stream_id FROM found_damage""")


def damaged(connection: Connection) -> list[int | None]:
    """Return the streams of which damage is recorded; null: what is of none."""
    result = connection.execute(DAMAGED)
    return [row[0] for row in result]


MOVE = text(
    """INSERT INTO verification (stream_id, begun_at, segment_id, start_offset, proven_clock)
SELECT stream_id, clock_timestamp(), -1, -1, clock
FROM unnest(CAST(:ids AS bigint[]), CAST(:clocks AS bigint[])) AS m (stream_id, clock)
ORDER BY stream_id
ON CONFLICT (stream_id) DO UPDATE SET begun_at = excluded.begun_at,
    proven_clock = greatest(verification.proven_clock, excluded.proven_clock)"""
)


def move(connection: Connection, *, ids: Sequence[int], clocks: Sequence[int]) -> None:
    """Record up to which clocks the files of streams were looked at."""
    result = connection.execute(MOVE, {"ids": list(ids), "clocks": list(clocks)})
    result.close()


PROVE = text(
    """UPDATE stream_cut c SET proven_at = clock_timestamp() FROM cuts_proven_by_now() n
WHERE n.stream_id = c.stream_id AND n.recorded_at = c.recorded_at"""
)


def prove(connection: Connection) -> None:
    """Call the cuts proven before which all was looked at, and no damage is."""
    result = connection.execute(PROVE)
    result.close()


LEFT_OVER = text(
    """SELECT u.stream_name, u.since < u.until AS more FROM unproven_cuts() u ORDER BY u.stream_name"""
)


class LeftOver(NamedTuple):
    """A row of `left_over`."""

    stream_name: str
    more: bool


def left_over(connection: Connection) -> list[LeftOver]:
    """Return the streams with cuts that are not proven, and whether there is more to look at."""
    result = connection.execute(LEFT_OVER)
    return [LeftOver._make(row) for row in result]
