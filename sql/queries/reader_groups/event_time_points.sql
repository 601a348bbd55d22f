-- Event times as places in streams.
-- import: from weir.controller.queries import Cut

-- name: commits_at -> many CommitPlace
-- Return where an event time lies in streams: the first commit of which an event may be at or after
-- the time, and so the last one before it; or the last one of which an event may be before the time.
-- Without one, the place is before all.
-- null: event_time
-- type: cut = Cut

WITH commit_ AS NOT MATERIALIZED (
    SELECT s.stream_id, t.clock, t.min_event_time AS low, t.max_event_time AS high,
        t.clock <= s.event_time_since OR t.min_event_time IS NULL AS unknown
    FROM stream s JOIN transaction t ON t.stream_id = s.stream_id
    WHERE s.stream_id = ANY(:ids) AND t.state = 'committed' AND t.events > 0
), place AS (
    SELECT s.stream_id, s.stream_name, s.event_time, clock_time(coalesce(CASE
        WHEN :as_end THEN (
            SELECT max(c.clock) FROM commit_ c WHERE c.stream_id = s.stream_id
                AND (c.unknown OR c.low < :event_time))
        ELSE (
            SELECT max(b.clock) FROM commit_ b WHERE b.stream_id = s.stream_id
                AND b.clock < coalesce((
                    SELECT min(c.clock) FROM commit_ c WHERE c.stream_id = s.stream_id
                        AND (c.unknown OR c.high >= :event_time)), 9223372036854775807))
        END, 0)) AS at
    FROM stream s WHERE s.stream_id = ANY(:ids)
)
SELECT stream_id, event_time, at, stream_cut_at(stream_name, at) AS cut FROM place

-- name: between -> many Between
-- Return how many events lie between cuts of streams.
SELECT c.s AS stream_id, u.events
FROM jsonb_to_recordset(CAST(:cuts AS jsonb)) AS c (s bigint, start jsonb, past jsonb)
JOIN stream s ON s.stream_id = c.s
CROSS JOIN LATERAL unread_from(c.s, c.start, s.head, nullif(c.past, 'null')) u
