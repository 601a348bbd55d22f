-- Which event times commits have.

-- name: ranges -> many TimeRange
-- Return the least and the greatest event time of the commits between pairs of clocks, how many of their
-- events have none, and whether that is known: not of those before the event time was set.
-- null: low, high

SELECT t.low, t.high, t.untimed, t.known
FROM unnest(CAST(:firsts AS bigint[]), CAST(:lasts AS bigint[])) WITH ORDINALITY AS w (first, last, n)
CROSS JOIN stream s
CROSS JOIN LATERAL (
    SELECT min(c.min_event_time) AS low, max(c.max_event_time) AS high,
        coalesce(sum(c.untimed), 0)::bigint AS untimed,
        coalesce(bool_and(c.clock > s.event_time_since AND c.untimed IS NOT NULL), false) AS known
    FROM transaction c WHERE c.stream_name = s.stream_name AND c.state = 'committed'
      AND clock_time(c.clock) BETWEEN clock_time(w.first) AND clock_time(w.last)) t
WHERE s.stream_id = :stream_id ORDER BY w.n
