-- The queue of streams about which retention must decide anew.

-- name: queue -> none
-- Queue those of the streams that are active for a decision.
INSERT INTO retention_queue (stream_id, due_at)
SELECT stream_id, clock_timestamp() FROM stream WHERE stream_id = ANY(:ids) AND state = 'active'

-- name: due -> many DueStream
-- Return the queued streams that are due.
SELECT stream_id, stream FROM retention_due() ORDER BY stream_id

-- name: active -> many DueStream
-- Return the active streams of these names; all, unless `named`.
SELECT stream_id, stream_name AS stream FROM stream
WHERE state = 'active' AND (stream_name = ANY(CAST(:names AS text[])) OR NOT :named)
ORDER BY stream_id

-- name: take -> count
-- Take a locked stream from the queue.
DELETE FROM retention_queue WHERE stream_id = :stream_id
