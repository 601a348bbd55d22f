-- When data was there.

-- name: complete_at -> maybe
-- Return when a stream was complete to an event time: by its first commit that has made it so, or else by the last
-- statement.
-- null: at
SELECT CASE WHEN s.complete_until >= :until THEN coalesce(
    (SELECT min(clock_time(t.clock)) FROM transaction t
     WHERE t.stream_name = s.stream_name AND t.complete_until >= :until
       AND t.clock > coalesce((
           SELECT o.clock FROM transaction o WHERE o.stream_name = s.stream_name
           AND o.state = 'committed' AND coalesce(o.complete_until, :until - 1) < :until
           ORDER BY clock_time(o.clock) DESC LIMIT 1), 0)),
    (SELECT max(w.stated_at) FROM stream_writer w WHERE w.stream_id = s.stream_id)) END AS at
FROM stream s WHERE s.stream_name = :name AND s.state <> 'deleted'

-- name: read_at -> one
-- Return when a reader group had read everything up to an event time.
-- null: at
SELECT min(b.committed_at) AS at FROM reader_batch b
WHERE b.group_name = :name AND b.state = 'committed' AND b.complete_until >= :until
