"""Which files hold which events. A slice is a file, and what of it to read: `FileSlice` has the meaning of the columns. Made by `make queries` from sql/queries/controller/read_plan.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

SLICES_OF_BOUNDS = text(
    """SELECT f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq, f.last_seq,
    p.first_clock, p.last_clock, p.compacted, p.first_row, p.end_row,
    CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
        f.start_offset + p.first_row, f.start_offset + p.end_row) END AS holes,
    f.erased > 0 AS sparse
FROM (  -- a file that straddles the head stays whole: what lies below it is not read
        SELECT n.segment, greatest(n.first, h.event_offset) AS first, n.past
        FROM jsonb_to_recordset(CAST(:bounds AS jsonb))
            AS n (segment bigint, first bigint, past bigint)
        LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
            ON h.segment_id = n.segment
        WHERE n.past > coalesce(h.event_offset, 0) OFFSET 0) b
    CROSS JOIN LATERAL (
        SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = b.segment
          AND d.start_offset < b.past AND d.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n WHERE n.stream_id = :stream_id
              AND n.segment_id = b.segment AND n.start_offset <= b.first), 0) OFFSET 0) f
    CROSS JOIN LATERAL (
        SELECT greatest(b.first - f.start_offset, 0) AS first,
               least(b.past - f.start_offset, f.events) AS past OFFSET 0) r
    CROSS JOIN LATERAL (  -- per file: by estimates, a plan that reads all transactions is as cheap
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s CROSS JOIN LATERAL (
    SELECT o.clock AS first_clock, o.clock AS last_clock, false AS compacted,
           r.first AS first_row, r.past AS end_row
    FROM transaction o
    WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
    UNION ALL
    SELECT CASE WHEN r.first = 0 THEN f.first_clock ELSE
               (SELECT i.clock
                FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END,
           CASE WHEN r.past = f.events THEN f.last_clock ELSE
               (SELECT i.clock
                FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.past - 1) i) END,
           true, r.first, r.past
    WHERE f.transaction_number IS NULL OFFSET 0) p
ORDER BY f.segment_id, f.start_offset"""
)


class Slice(NamedTuple):
    """A row of `slices_of_bounds`."""

    path: str
    segment_id: int
    key_low: float
    key_high: float
    start_offset: int
    events: int
    first_seq: int
    last_seq: int
    first_clock: int
    last_clock: int
    compacted: bool
    first_row: int
    end_row: int
    holes: int
    sparse: bool


def slices_of_bounds(connection: Connection, *, bounds: str, stream_id: int) -> list[Slice]:
    """Return the slices within bounds. The clocks of a part of a file of several commits are those of the commits that the part begins and ends with."""
    result = connection.execute(SLICES_OF_BOUNDS, {"bounds": bounds, "stream_id": stream_id})
    return [Slice._make(row) for row in result]


SLICES_BY_COMMIT = text(
    """SELECT f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq, f.last_seq,
    p.first_clock, p.last_clock, p.compacted, p.first_row, p.end_row,
    CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
        f.start_offset + p.first_row, f.start_offset + p.end_row) END AS holes,
    f.erased > 0 AS sparse
FROM (  -- a file that straddles the head stays whole: what lies below it is not read
        SELECT n.segment, greatest(n.first, h.event_offset) AS first, n.past
        FROM jsonb_to_recordset(CAST(:bounds AS jsonb))
            AS n (segment bigint, first bigint, past bigint)
        LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
            ON h.segment_id = n.segment
        WHERE n.past > coalesce(h.event_offset, 0) OFFSET 0) b
    CROSS JOIN LATERAL (
        SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = b.segment
          AND d.start_offset < b.past AND d.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n WHERE n.stream_id = :stream_id
              AND n.segment_id = b.segment AND n.start_offset <= b.first), 0) OFFSET 0) f
    CROSS JOIN LATERAL (
        SELECT greatest(b.first - f.start_offset, 0) AS first,
               least(b.past - f.start_offset, f.events) AS past OFFSET 0) r
    CROSS JOIN LATERAL (  -- per file: by estimates, a plan that reads all transactions is as cheap
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s CROSS JOIN LATERAL (
    SELECT o.clock AS first_clock, o.clock AS last_clock, false AS compacted,
           r.first AS first_row, r.past AS end_row
    FROM transaction o
    WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
    UNION ALL
    SELECT i.clock, i.clock, true, greatest(r.first, i.start_offset - f.start_offset),
           least(r.past, i.start_offset + i.events - f.start_offset)
    FROM commits_in(f.stream_id, f.segment_id, f.start_offset + r.first,
                    f.start_offset + r.past) i
    WHERE f.transaction_number IS NULL OFFSET 0) p
ORDER BY f.segment_id, f.start_offset, p.first_row"""
)


def slices_by_commit(connection: Connection, *, bounds: str, stream_id: int) -> list[Slice]:
    """Return the slices within bounds, each of one commit."""
    result = connection.execute(SLICES_BY_COMMIT, {"bounds": bounds, "stream_id": stream_id})
    return [Slice._make(row) for row in result]


SLICES_OF_STREAM = text(
    """SELECT f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq, f.last_seq,
    p.first_clock, p.last_clock, p.compacted, p.first_row, p.end_row,
    CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
        f.start_offset + p.first_row, f.start_offset + p.end_row) END AS holes,
    f.erased > 0 AS sparse
FROM data_file f
JOIN segment s USING (stream_id, segment_id)
LEFT JOIN transaction t USING (stream_id, transaction_number)
LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
    ON h.segment_id = f.segment_id
CROSS JOIN LATERAL (SELECT
    greatest(coalesce(h.event_offset, 0) - f.start_offset, 0) AS first) r
CROSS JOIN LATERAL (SELECT
    coalesce(t.clock, CASE WHEN r.first = 0 THEN f.first_clock
        ELSE (SELECT i.clock
              FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END)
        AS first_clock,
    coalesce(t.clock, f.last_clock) AS last_clock, t.clock IS NULL AS compacted,
    r.first AS first_row, f.events AS end_row) p
WHERE f.stream_id = :stream_id ORDER BY f.segment_id, f.start_offset"""
)


def slices_of_stream(connection: Connection, *, stream_id: int) -> list[Slice]:
    """Return the slices of a whole stream, from the head to the tail."""
    result = connection.execute(SLICES_OF_STREAM, {"stream_id": stream_id})
    return [Slice._make(row) for row in result]


NEWEST = text(
    """WITH seen AS (
    SELECT min(n.clock) AS oldest FROM newest_commits(
        :stream_id, coalesce(CAST(:before AS bigint), 9223372036854775807), :commits) n
), newest AS MATERIALIZED (
    SELECT d.*, i.clock, p.begins, p.ends FROM seen
    CROSS JOIN LATERAL commits_between(:stream_id, seen.oldest,
        coalesce(CAST(:before AS bigint) - 1, 9223372036854775807)) i
    LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
        ON h.segment_id = i.segment_id
    CROSS JOIN LATERAL (  -- from the file on that holds the first event
        SELECT * FROM data_file o
        WHERE o.stream_id = :stream_id AND o.segment_id = i.segment_id
          AND o.start_offset < i.start_offset + i.events AND o.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n
              WHERE n.stream_id = :stream_id AND n.segment_id = i.segment_id
                AND n.start_offset <= i.start_offset), 0) OFFSET 0) d
    CROSS JOIN LATERAL (
        SELECT greatest(i.start_offset, h.event_offset, d.start_offset) - d.start_offset
                   AS begins,
               least(i.start_offset + i.events - d.start_offset, d.events) AS ends) p
    WHERE p.begins < p.ends AND (d.erased = 0 OR p.ends - p.begins > holes_in(
        d.stream_id, d.segment_id, d.start_offset + p.begins, d.start_offset + p.ends))
    ORDER BY i.clock DESC FETCH FIRST :most ROWS WITH TIES
)
SELECT n.*, seen.oldest FROM seen LEFT JOIN LATERAL (
    SELECT f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq, f.last_seq,
    p.first_clock, p.last_clock, p.compacted, p.first_row, p.end_row,
    CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
        f.start_offset + p.first_row, f.start_offset + p.end_row) END AS holes,
    f.erased > 0 AS sparse
    FROM newest f CROSS JOIN LATERAL (  -- per file: by estimates, a plan that reads all transactions is as cheap
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s CROSS JOIN LATERAL (SELECT
        f.clock AS first_clock, f.clock AS last_clock, f.transaction_number IS NULL AS compacted,
        f.begins AS first_row, f.ends AS end_row) p
) n ON true
WHERE seen.oldest IS NOT NULL
ORDER BY n.first_clock DESC, n.last_seq DESC"""
)


class NewestSlice(NamedTuple):
    """A row of `newest`."""

    path: str | None
    segment_id: int | None
    key_low: float | None
    key_high: float | None
    start_offset: int | None
    events: int | None
    first_seq: int | None
    last_seq: int | None
    first_clock: int | None
    last_clock: int | None
    compacted: bool | None
    first_row: int | None
    end_row: int | None
    holes: int | None
    sparse: bool | None
    oldest: int


def newest(
    connection: Connection, *, stream_id: int, before: int | None, commits: int, most: int
) -> list[NewestSlice]:
    """Return the slices of the newest commits before a clock, each of one commit, so many commits that the last one written comes first; and the clock of the oldest of them. Each slice has an event that can be read, so `most` slices, with all of the last one's commit, hold so many of the last events. A row without a file says that commits were looked at."""
    result = connection.execute(
        NEWEST, {"stream_id": stream_id, "before": before, "commits": commits, "most": most}
    )
    return [NewestSlice._make(row) for row in result]


READABLE = text(
    """SELECT r.cut, join_cuts(:stream_id, CAST(:end AS jsonb), r.cut) AS end_cut
FROM stream CROSS JOIN LATERAL
    (SELECT readable_cut(:stream_id, CAST(:start AS jsonb), head) AS cut OFFSET 0) r
WHERE stream_id = :stream_id"""
)


class Readable(NamedTuple):
    """A row of `readable`."""

    cut: dict[str, int | str]
    end_cut: dict[str, int | str] | None


def readable(connection: Connection, *, stream_id: int, end: str | None, start: str) -> Readable:
    """Return what is left to read between two cuts: each cut, or the head where that is later."""
    result = connection.execute(READABLE, {"stream_id": stream_id, "end": end, "start": start})
    row = result.one()
    return Readable._make(row)
