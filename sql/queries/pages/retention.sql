-- What runs of retention would do by a time.

-- name: due -> one
-- Return how many streams runs decide about by a time, how many of these have a maximum, and a page of their places.
WITH due AS MATERIALIZED (
    SELECT (c.retain_max_age IS NULL AND c.retain_max_bytes IS NULL)::integer AS safe, q.stream
    FROM weir_internal.retention_due(:at) q JOIN weir.stream_configuration c USING (stream)
    WHERE c.retention <> 'keep')
SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM due WHERE safe = 0) AS limited,
    array(SELECT d.safe || ' ' || d.stream FROM due d
          WHERE (d.safe, d.stream) > (:safe, CAST(:name AS text))
          ORDER BY d.safe, d.stream LIMIT CAST(:limit AS bigint) + 1) AS places

-- name: decided -> many Decision
-- Return what would be decided about streams by a time.
-- row: What would be decided about a stream. `lost`, `lost_to_others`: unread events by subscriber, and by group that
-- row: is no subscriber.
-- type: lost = dict[str, int]
-- type: lost_to_others = dict[str, int]
SELECT stream, due_at, retention, rule, reason, events, bytes, held_by, timed_out,
    lost, lost_to_others
FROM weir.retention_by(:at) WHERE stream = ANY(:names)

-- name: goes -> many
-- Return what goes of streams by each of some times, as far as retention decides about them.
-- row: What retention truncates of a stream by a time, and why.
SELECT s.stream_name AS stream, a.at, d.bytes, d.rule, d.reason
FROM stream s CROSS JOIN unnest(CAST(:times AS timestamptz[])) AS a (at)
CROSS JOIN LATERAL decide_retention(s.stream_id, a.at) d
WHERE s.stream_name = ANY(:names) AND s.state = 'active' AND s.retention <> 'keep'
ORDER BY 1, 2
