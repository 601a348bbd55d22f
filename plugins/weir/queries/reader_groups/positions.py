"""The positions of groups, and how they move. Made by `make queries` from sql/queries/reader_groups/positions.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

POSITIONS = text(
    """SELECT p.stream_id, p.segment_id, s.key_low, s.key_high,
          coalesce(t.tail_offset, s.events) AS ends_at, s.sealed_epoch, p.next_offset,
          p.reader_id, h.batch_id
FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
LEFT JOIN segment_tail t USING (stream_id, segment_id)
LEFT JOIN held_segments(:group_id) h USING (stream_id, segment_id)
WHERE p.group_id = :group_id AND p.state <> 'completed' ORDER BY p.stream_id, p.segment_id"""
)


class PositionRow(NamedTuple):
    """A row of `positions`."""

    stream_id: int
    segment_id: int
    key_low: float
    key_high: float
    ends_at: int
    sealed_epoch: int | None
    next_offset: int | None
    reader_id: str | None
    batch_id: int | None


def positions(connection: Connection, *, group_id: int) -> list[PositionRow]:
    """Return all positions of a group."""
    result = connection.execute(POSITIONS, {"group_id": group_id})
    return [PositionRow._make(row) for row in result]


LAGS = text(
    """SELECT u.stream_id, u.segment_id, s.last_clock - u.clock AS lag
FROM oldest_unread(:group_id) u JOIN stream s USING (stream_id)"""
)


class Lag(NamedTuple):
    """A row of `lags`."""

    stream_id: int
    segment_id: int
    lag: int


def lags(connection: Connection, *, group_id: int) -> list[Lag]:
    """Return how far positions are behind, in microseconds."""
    result = connection.execute(LAGS, {"group_id": group_id})
    return [Lag._make(row) for row in result]


RATES = text("""SELECT reader_id, rate FROM read_rates(:group)""")


class Rate(NamedTuple):
    """A row of `rates`."""

    reader_id: str
    rate: float


def rates(connection: Connection, *, group: str) -> list[Rate]:
    """Return the events per second of readers whose recent batches say how fast they are."""
    result = connection.execute(RATES, {"group": group})
    return [Rate._make(row) for row in result]


AHEAD = text(
    """WITH RECURSIVE positions AS MATERIALIZED (
    SELECT p.stream_id, s.segment_id, s.key_low, s.key_high, s.sealed_epoch
    FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
    WHERE p.group_id = :group_id AND p.state <> 'completed'
), front AS MATERIALIZED (
    SELECT l.stream_id, f.keys, f.owners
    FROM (SELECT stream_id, array_agg(segment_id) AS ids, array_agg(key_low) AS lows,
                 array_agg(key_high) AS highs FROM positions GROUP BY stream_id) l
    CROSS JOIN LATERAL front(l.ids, l.lows, l.highs) f
), ahead AS (
    SELECT stream_id, sealed_epoch AS epoch FROM positions WHERE sealed_epoch IS NOT NULL
    UNION
    SELECT a.stream_id, n.sealed_epoch FROM ahead a CROSS JOIN LATERAL (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends_at, g.sealed_epoch
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
    WHERE g.stream_id = a.stream_id AND g.segment_id >= first_segment_id(a.epoch)
      AND g.segment_id < first_segment_id(a.epoch + 1)
      AND g.segment_id >= (SELECT f.owners[width_bucket(g.key_low, f.keys)]
                           FROM front f WHERE f.stream_id = g.stream_id) OFFSET 0) n WHERE n.sealed_epoch IS NOT NULL
)
SELECT n.* FROM (SELECT DISTINCT stream_id, sealed_epoch AS epoch FROM positions
                 WHERE sealed_epoch IS NOT NULL) a CROSS JOIN LATERAL (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends_at, g.sealed_epoch
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
    WHERE g.stream_id = a.stream_id AND g.segment_id >= first_segment_id(a.epoch)
      AND g.segment_id < first_segment_id(a.epoch + 1)
      AND g.segment_id >= (SELECT f.owners[width_bucket(g.key_low, f.keys)]
                           FROM front f WHERE f.stream_id = g.stream_id) OFFSET 0) n
UNION ALL
(SELECT n.* FROM ahead a CROSS JOIN LATERAL (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends_at, g.sealed_epoch
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
    WHERE g.stream_id = a.stream_id AND g.segment_id >= first_segment_id(a.epoch)
      AND g.segment_id < first_segment_id(a.epoch + 1)
      AND g.segment_id >= (SELECT f.owners[width_bucket(g.key_low, f.keys)]
                           FROM front f WHERE f.stream_id = g.stream_id) OFFSET 0) n LIMIT :most)"""
)


class Ahead(NamedTuple):
    """A row of `ahead`."""

    stream_id: int
    segment_id: int
    key_low: float
    key_high: float
    ends_at: int
    sealed_epoch: int | None


def ahead(connection: Connection, *, group_id: int, most: int) -> list[Ahead]:
    """Return the segments that follow those at positions, direct successors first."""
    result = connection.execute(AHEAD, {"group_id": group_id, "most": most})
    return [Ahead._make(row) for row in result]


ADVANCE = text(
    """WITH noted AS (
    UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id
), back AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp()
    FROM reader_group JOIN reader_group_stream USING (group_id) JOIN stream USING (stream_id)
    WHERE group_id = :group_id AND subscriber AND stream.state = 'active'
      AND moved_at + time_out * interval '1 second' < clock_timestamp()
), passed AS (
    DELETE FROM reader_group_segment p
    USING unnest(CAST(:done_streams AS bigint[]), CAST(:done_segments AS bigint[]))
        AS d (stream_id, segment_id)
    WHERE p.group_id = :group_id AND p.stream_id = d.stream_id
      AND p.segment_id = d.segment_id
), entered AS (
    INSERT INTO reader_group_segment AS p (group_id, stream_id, segment_id, state,
                                           next_offset, reader_id)
    SELECT :group_id, e.stream_id, e.segment_id,
           CASE WHEN e.next_offset IS NULL THEN 'future'
                WHEN e.mine THEN 'assigned' ELSE 'unassigned' END,
           e.next_offset, CASE WHEN e.mine THEN CAST(:reader_id AS text) END
    FROM unnest(CAST(:new_streams AS bigint[]), CAST(:new_segments AS bigint[]),
                CAST(:new_offsets AS bigint[]), CAST(:new_mine AS boolean[]))
        AS e (stream_id, segment_id, next_offset, mine)
    ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
        state = excluded.state, next_offset = excluded.next_offset,
        reader_id = excluded.reader_id
)
UPDATE reader_group_segment p SET state = 'assigned', reader_id = :reader_id,
    next_offset = m.end_offset
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
            CAST(:ends AS bigint[])) AS m (stream_id, segment_id, end_offset)
WHERE p.group_id = :group_id AND p.stream_id = m.stream_id
  AND p.segment_id = m.segment_id"""
)


def advance(
    connection: Connection,
    *,
    group_id: int,
    done_streams: Sequence[int],
    done_segments: Sequence[int],
    reader_id: str,
    new_streams: Sequence[int],
    new_segments: Sequence[int],
    new_offsets: Sequence[int | None],
    new_mine: Sequence[bool],
    streams: Sequence[int],
    segments: Sequence[int],
    ends: Sequence[int],
) -> None:
    """Move positions to offsets, and replace those that are completed."""
    result = connection.execute(
        ADVANCE,
        {
            "group_id": group_id,
            "done_streams": list(done_streams),
            "done_segments": list(done_segments),
            "reader_id": reader_id,
            "new_streams": list(new_streams),
            "new_segments": list(new_segments),
            "new_offsets": list(new_offsets),
            "new_mine": list(new_mine),
            "streams": list(streams),
            "segments": list(segments),
            "ends": list(ends),
        },
    )
    result.close()


CREATED = text(
    """SELECT n.stream_id, n.segment_id, n.key_low, n.key_high, 0 AS ends_at, n.sealed_epoch
FROM (SELECT DISTINCT s.stream_id, s.sealed_epoch AS epoch
      FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
          AS d (stream_id, segment_id)
      JOIN segment s USING (stream_id, segment_id)) e
JOIN segment n ON n.stream_id = e.stream_id
    AND n.segment_id >= first_segment_id(e.epoch)
    AND n.segment_id < first_segment_id(e.epoch + 1)"""
)


def created(
    connection: Connection, *, streams: Sequence[int], segments: Sequence[int]
) -> list[Ahead]:
    """Return the segments that the epochs created which sealed these."""
    result = connection.execute(CREATED, {"streams": list(streams), "segments": list(segments)})
    return [Ahead._make(row) for row in result]


CUTS = text(
    """SELECT stream_id, group_cut(group_id, stream_id) AS cut FROM reader_group_stream
WHERE group_id = :group_id AND stream_id = ANY(:ids)"""
)


class GroupCut(NamedTuple):
    """A row of `cuts`."""

    stream_id: int
    cut: Cut


def cuts(connection: Connection, *, group_id: int, ids: Sequence[int]) -> list[GroupCut]:
    """Return the position of a group in streams."""
    result = connection.execute(CUTS, {"group_id": group_id, "ids": list(ids)})
    return [GroupCut._make(row) for row in result]


LEAVE = text(
    """WITH noted AS (
    UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id
), back AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp()
    FROM reader_group JOIN reader_group_stream USING (group_id) JOIN stream USING (stream_id)
    WHERE group_id = :group_id AND subscriber AND stream.state = 'active'
      AND moved_at + time_out * interval '1 second' < clock_timestamp()
), cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (stream_id bigint, cut jsonb)
), placed AS (
    INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at, cut)
SELECT :group_id, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :group_id),
       CASE WHEN l.cause = 'moved' AND l.cause = 'moved' THEN l.number
       ELSE coalesce(l.number, 0) + 1 END, 'moved', group_cut(:group_id, c.stream_id), c.cut
FROM cuts c LEFT JOIN LATERAL (
    SELECT o.number, CASE WHEN NOT EXISTS (
        SELECT FROM delivered_range d WHERE d.group_id = :group_id
        AND d.stream_id = c.stream_id AND d.placement = o.number) AND NOT EXISTS (
            SELECT FROM (SELECT truncated_at FROM truncation
                         WHERE stream_id = c.stream_id ORDER BY number DESC LIMIT 1) t
            WHERE t.truncated_at >= o.placed_at) THEN o.cause END AS cause
    FROM placement o WHERE o.group_id = :group_id AND o.stream_id = c.stream_id
    ORDER BY o.number DESC LIMIT 1) l ON true
ON CONFLICT (group_id, stream_id, number) DO UPDATE SET
    cut = excluded.cut, placed_at = excluded.placed_at
)
DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = ANY(:ids)"""
)


def leave(connection: Connection, *, group_id: int, cuts: str, ids: Sequence[int]) -> None:
    """Take the positions of a group away, and record where it is put."""
    result = connection.execute(LEAVE, {"group_id": group_id, "cuts": cuts, "ids": list(ids)})
    result.close()


PLACE = text(
    """WITH cuts AS (
    SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (stream_id bigint, cut jsonb)
)
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT :group_id, c.stream_id, e.segment_id,
       CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END, e.event_offset
FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e"""
)


def place(connection: Connection, *, cuts: str, group_id: int) -> None:
    """Add positions of a group at cuts."""
    result = connection.execute(PLACE, {"cuts": cuts, "group_id": group_id})
    result.close()
