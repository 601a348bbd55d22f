-- How much was committed lately.

-- name: newest_commits -> many
-- Return the newest commits of each stream after a time, oldest first.
SELECT p.stream, r.clocks, r.events
FROM unnest(CAST(:names AS text[])) AS p (stream)
CROSS JOIN LATERAL (
    SELECT array_agg(t.clock ORDER BY t.clock) AS clocks,
           array_agg(t.events ORDER BY t.clock) AS events
    FROM (SELECT t.clock, t.events FROM weir.transactions t
          WHERE t.stream = p.stream AND t.clock > :since
          ORDER BY t.clock DESC LIMIT :most) t) r
WHERE r.clocks IS NOT NULL
