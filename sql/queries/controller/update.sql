-- Update a stream.

-- name: begin_event_time -> none
-- Delete what writers have stated, because it was about event times of another meaning.
WITH gone AS (DELETE FROM stream_writer WHERE stream_id = :stream_id)
UPDATE stream SET event_time_since = :clock, complete_until = NULL, newest_event_time = NULL,
    late_events = 0, ahead_events = 0, behind_events = 0
WHERE stream_id = :stream_id
