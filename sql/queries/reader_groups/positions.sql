-- The positions of groups, and how they move.
-- fragments: reader_groups/moves.sql
-- import: from weir.controller.queries import Cut

-- name: positions -> many PositionRow
-- Return all positions of a group.
-- null: sealed_epoch, next_offset, reader_id, batch_id
SELECT p.stream_id, p.segment_id, s.key_low, s.key_high,
          coalesce(t.tail_offset, s.events) AS ends_at, s.sealed_epoch, p.next_offset,
          p.reader_id, h.batch_id
FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
LEFT JOIN segment_tail t USING (stream_id, segment_id)
LEFT JOIN held_segments(:group_id) h USING (stream_id, segment_id)
WHERE p.group_id = :group_id AND p.state <> 'completed' ORDER BY p.stream_id, p.segment_id

-- name: lags -> many Lag
-- Return how far positions are behind, in microseconds.
SELECT u.stream_id, u.segment_id, s.last_clock - u.clock AS lag
FROM oldest_unread(:group_id) u JOIN stream s USING (stream_id)

-- name: rates -> many Rate
-- Return the events per second of readers whose recent batches say how fast they are.
SELECT reader_id, rate FROM read_rates(:group)

-- fragment: created
-- The segments that an epoch created follow those that it sealed. The group has not passed one if it
-- is at least as new as the group's position at the same key. One key decides, because a group passes
-- a segment as a whole.
CROSS JOIN LATERAL (
    SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
           coalesce(t.tail_offset, g.events) AS ends_at, g.sealed_epoch
    FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
    WHERE g.stream_id = a.stream_id AND g.segment_id >= first_segment_id(a.epoch)
      AND g.segment_id < first_segment_id(a.epoch + 1)
      AND g.segment_id >= (SELECT f.owners[width_bucket(g.key_low, f.keys)]
                           FROM front f WHERE f.stream_id = g.stream_id) OFFSET 0) n

-- name: ahead -> many Ahead
-- Return the segments that follow those at positions, direct successors first.
-- null: sealed_epoch
WITH RECURSIVE positions AS MATERIALIZED (
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
    SELECT a.stream_id, n.sealed_epoch FROM ahead a {created} WHERE n.sealed_epoch IS NOT NULL
)
SELECT n.* FROM (SELECT DISTINCT stream_id, sealed_epoch AS epoch FROM positions
                 WHERE sealed_epoch IS NOT NULL) a {created}
UNION ALL
(SELECT n.* FROM ahead a {created} LIMIT :most)

-- name: advance -> none
-- Move positions to offsets, and replace those that are completed.
-- type: :new_offsets = Sequence[int | None]
WITH {moved}, passed AS (
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
  AND p.segment_id = m.segment_id

-- name: created -> many Ahead
-- Return the segments that the epochs created which sealed these.
-- null: sealed_epoch
SELECT n.stream_id, n.segment_id, n.key_low, n.key_high, 0 AS ends_at, n.sealed_epoch
FROM (SELECT DISTINCT s.stream_id, s.sealed_epoch AS epoch
      FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
          AS d (stream_id, segment_id)
      JOIN segment s USING (stream_id, segment_id)) e
JOIN segment n ON n.stream_id = e.stream_id
    AND n.segment_id >= first_segment_id(e.epoch)
    AND n.segment_id < first_segment_id(e.epoch + 1)

-- name: cuts -> many GroupCut
-- Return the position of a group in streams.
-- type: cut = Cut
SELECT stream_id, group_cut(group_id, stream_id) AS cut FROM reader_group_stream
WHERE group_id = :group_id AND stream_id = ANY(:ids)

-- fragment: cause
'moved'

-- fragment: cuts
SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (stream_id bigint, cut jsonb)

-- name: leave -> none
-- Take the positions of a group away, and record where it is put.
WITH {moved}, cuts AS (
    {cuts}
), placed AS (
    {placed}
)
DELETE FROM reader_group_segment WHERE group_id = :group_id AND stream_id = ANY(:ids)

-- name: place -> none
-- Add positions of a group at cuts.
WITH cuts AS (
    {cuts}
)
{placing}
