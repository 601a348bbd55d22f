-- What the next run of retention would do.

-- name: due -> one
-- Return how many streams a run decides about, how many of these have a maximum, and a page of their places.
WITH due AS MATERIALIZED (
    SELECT (c.retain_max_age IS NULL AND c.retain_max_bytes IS NULL)::integer AS safe, q.stream
    FROM weir_internal.retention_due() q JOIN weir.stream_configuration c USING (stream)
    WHERE c.retention <> 'keep')
SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM due WHERE safe = 0) AS limited,
    array(SELECT d.safe || ' ' || d.stream FROM due d
          WHERE (d.safe, d.stream) > (:safe, CAST(:name AS text))
          ORDER BY d.safe, d.stream LIMIT CAST(:limit AS bigint) + 1) AS places

-- name: decided -> many Decision
-- Return what would be decided about streams.
-- row: What would be decided about a stream. `lost`, `lost_to_others`: unread events by subscriber, and by group that
-- row: is no subscriber.
-- type: lost = dict[str, int]
-- type: lost_to_others = dict[str, int]
SELECT stream, due_at, retention, rule, reason, events, bytes, held_by, timed_out,
    lost, lost_to_others
FROM weir.next_retention WHERE stream = ANY(:names)
