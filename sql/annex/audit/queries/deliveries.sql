-- What the audit asks of reader groups: since it was put somewhere, each group was given every
-- offset up to its position once, and passed over no other than those that were truncated.
-- fragments: kept.sql
-- import: from weir.annex.audit.sentences import Found

-- name: stays -> many Found
-- Return where a group was given too much or too little. A stay is what a group read between two
-- placements: from the cut at which it was put to where it left, or where it is. `moved`: up to
-- which offset a cut has passed a segment, which the oldest entry of the cut at the same key says.
-- A group passes over what it has not read only if it is gone.
WITH {kept}, stay AS MATERIALIZED (
    SELECT p.group_id, p.stream_id, p.number, p.cause, p.cut,
           lead(p.left_at) OVER next AS left_at, lead(p.number) OVER next IS NULL AS now
    FROM placement p JOIN reader_group_stream gs USING (group_id, stream_id)
    JOIN stream s USING (stream_id)
    WHERE s.state <> 'deleted'
    WINDOW next AS (PARTITION BY p.group_id, p.stream_id ORDER BY p.number)
), entry AS MATERIALIZED (
    SELECT e.*, g.key_low, g.key_high FROM (
        SELECT y.group_id, y.stream_id, y.number, y.side, c.segment_id, c.past FROM (
            SELECT group_id, stream_id, number, 'from' AS side, cut FROM stay
            UNION ALL
            SELECT group_id, stream_id, number, 'to', left_at FROM stay WHERE NOT now
            UNION ALL
            SELECT y.group_id, y.stream_id, y.number, 'released', gs.released_cut
            FROM stay y JOIN reader_group_stream gs USING (group_id, stream_id)
            WHERE y.now AND y.stream_id IN (SELECT stream_id FROM truncation)
        ) y CROSS JOIN LATERAL {entries} c
        UNION ALL
        SELECT y.group_id, y.stream_id, y.number, 'to', p.segment_id, p.next_offset
        FROM stay y JOIN reader_group_segment p USING (group_id, stream_id) WHERE y.now
    ) e JOIN seg g USING (stream_id, segment_id)
), side AS MATERIALIZED (
    SELECT group_id, stream_id, number, side, min(min(segment_id) FILTER (
               WHERE side = 'from')) OVER (PARTITION BY group_id, stream_id, number) AS first,
           coalesce(array_agg(segment_id) FILTER (WHERE past IS NOT NULL), '{}') AS known
    FROM entry GROUP BY group_id, stream_id, number, side
), asked AS MATERIALIZED (
    SELECT i.group_id, i.stream_id, i.number, i.side, g.segment_id, g.key_low, g.ends
    FROM side i JOIN seg g ON g.stream_id = i.stream_id AND g.segment_id >= i.first
        AND g.segment_id <> ALL (i.known)
), moved AS MATERIALIZED (
    SELECT e.group_id, e.stream_id, e.number, e.side, e.segment_id, e.past
    FROM entry e WHERE e.past IS NOT NULL
    UNION ALL
    SELECT a.group_id, a.stream_id, a.number, a.side, a.segment_id,
           CASE WHEN min(o.segment_id) > a.segment_id THEN a.ends ELSE 0 END
    FROM asked a JOIN entry o ON o.group_id = a.group_id AND o.stream_id = a.stream_id
        AND o.number = a.number AND o.side = a.side
        AND o.key_low <= a.key_low AND a.key_low < o.key_high
    GROUP BY a.group_id, a.stream_id, a.number, a.side, a.segment_id, a.ends
), need AS MATERIALIZED (
    SELECT group_id, stream_id, number, segment_id,
           coalesce(max(past) FILTER (WHERE side = 'from'), 0) AS first,
           max(past) FILTER (WHERE side = 'to') AS past,
           max(past) FILTER (WHERE side = 'released') AS released
    FROM moved GROUP BY group_id, stream_id, number, segment_id
), summed AS (
    SELECT d.group_id, d.stream_id, d.segment_id, d.placement AS number,
           min(d.from_offset) AS lo, max(d.to_offset) AS hi, sum(d.events) AS events,
           sum(d.to_offset - d.from_offset) AS size,
           sum(hashint8extended(d.to_offset, 0)) - sum(hashint8extended(d.from_offset, 0)) AS whole
    FROM delivered_range d GROUP BY d.group_id, d.stream_id, d.segment_id, d.placement
), have AS (
    SELECT *, whole <> hashint8extended(hi, 0)::numeric - hashint8extended(lo, 0) AS broken
    FROM summed
), wrong AS (
    SELECT group_id, stream_id, number, segment_id, n.first, n.past, h.lo, h.hi,
           CASE WHEN h.events > h.size OR h.size > h.hi - h.lo THEN 'delivered_twice'
                WHEN h.events < h.size THEN 'delivered_sum'
                WHEN h.broken THEN 'not_delivered'
                WHEN n.past > k.ends THEN 'position_beyond_tail'
                WHEN n.past < n.first THEN 'position_before_start'
                WHEN n.past > n.first AND h.lo IS NULL THEN 'not_delivered'
                WHEN h.lo < n.first THEN 'delivered_before_start'
                WHEN h.hi > n.past THEN 'delivered_beyond_position'
                WHEN n.past > n.first AND (h.lo > n.first OR h.hi < n.past)
                THEN 'not_delivered' END AS kind, k.ends
    FROM need n FULL JOIN have h USING (group_id, stream_id, number, segment_id)
    LEFT JOIN kept k USING (stream_id, segment_id)
), named AS MATERIALIZED (
    SELECT n.*, y.cause, y.now, s.stream_name, g.name, g.subscriber, k.kept_from
    FROM need n JOIN stay y USING (group_id, stream_id, number)
    JOIN kept k USING (stream_id, segment_id)
    JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
    WHERE y.cause = 'skipped' OR y.now AND k.kept_from > 0
), went AS MATERIALIZED (
    SELECT r.*, t.subscribers, t.truncated_at
    FROM truncated_range r JOIN truncation t USING (stream_id, number)
    WHERE t.subscribers <> '{}'
), last AS MATERIALIZED (
    SELECT stream_id, max(number) AS number FROM truncation GROUP BY stream_id
), placed AS MATERIALIZED (
    SELECT group_id, stream_id, max(placed_at) AS placed_at FROM placement
    GROUP BY group_id, stream_id
)
SELECT w.kind, s.stream_name AS stream, g.name AS reader_group, w.segment_id AS segment,
       CASE WHEN w.kind = 'position_beyond_tail' THEN w.ends
            WHEN w.kind IN ('delivered_beyond_position', 'position_before_start') THEN w.past
            WHEN w.kind <> 'not_delivered' THEN w.lo
            WHEN d.before IS NOT NULL THEN d.before
            WHEN w.lo IS NULL OR w.lo > w.first THEN w.first ELSE w.hi END AS a,
       CASE WHEN w.kind = 'position_beyond_tail' THEN w.past
            WHEN w.kind IN ('delivered_before_start', 'position_before_start') THEN w.first
            WHEN w.kind <> 'not_delivered' THEN w.hi
            WHEN d.before IS NOT NULL THEN d.from_offset
            WHEN w.lo > w.first THEN w.lo ELSE w.past END AS b, NULL AS name
FROM wrong w JOIN stream s USING (stream_id) JOIN reader_group g USING (group_id)
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT r.from_offset, lag(r.to_offset) OVER (ORDER BY r.from_offset) AS before
        FROM delivered_range r WHERE r.group_id = w.group_id AND r.stream_id = w.stream_id
          AND r.segment_id = w.segment_id AND r.placement = w.number) r
    WHERE r.before < r.from_offset ORDER BY r.from_offset LIMIT 1) d ON w.kind = 'not_delivered'
WHERE w.kind IS NOT NULL
UNION ALL
SELECT 'skipped_what_was_kept', n.stream_name, n.name, n.segment_id,
       greatest(coalesce(b.past, 0), n.kept_from), n.first, NULL
FROM named n LEFT JOIN need b ON b.group_id = n.group_id AND b.stream_id = n.stream_id
    AND b.number = n.number - 1 AND b.segment_id = n.segment_id
WHERE n.cause = 'skipped' AND n.first > greatest(coalesce(b.past, n.first), n.kept_from)
UNION ALL
SELECT 'released_moved_back', n.stream_name, n.name, n.segment_id,
       coalesce(n.released, 0), r.to_offset, r.number::text
FROM named n JOIN last l ON l.stream_id = n.stream_id
JOIN went r ON r.stream_id = n.stream_id AND r.number = l.number AND r.segment_id = n.segment_id
JOIN placed p ON p.group_id = n.group_id AND p.stream_id = n.stream_id
WHERE n.now AND n.subscriber AND coalesce(n.released, 0) < r.to_offset
  AND p.placed_at <= r.truncated_at
  AND r.subscribers -> n.name -> 'group_id' = to_jsonb(n.group_id)
  AND r.subscribers -> n.name -> 'released' = 'true'
LIMIT 100
