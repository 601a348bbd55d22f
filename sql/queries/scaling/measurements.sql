-- Which streams are being measured.

-- name: begin -> none
-- Note that streams are measured, and that they have not said how it ended.
INSERT INTO scale_measurement AS m (stream_id, silent_attempts, begun_at)
SELECT s, 1, clock_timestamp() FROM unnest(CAST(:ids AS bigint[])) s ORDER BY s
ON CONFLICT (stream_id) DO UPDATE SET silent_attempts = m.silent_attempts + 1,
    begun_at = excluded.begun_at

-- name: end -> none
-- Note that the measurement of streams has ended.
DELETE FROM scale_measurement WHERE stream_id = ANY(CAST(:ids AS bigint[]))
