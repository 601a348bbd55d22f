-- Update a stream.
-- fragments: controller/stream.sql

-- name: store -> none
-- Store the settings of a stream, given as JSON.
UPDATE stream SET ({settings}) = (
    SELECT {settings} FROM jsonb_populate_record(CAST(NULL AS stream), CAST(:settings AS jsonb)))
WHERE stream_id = :stream_id

-- name: begin_event_time -> none
-- Delete what writers have stated, because it was about event times of another meaning.
WITH gone AS (DELETE FROM stream_writer WHERE stream_id = :stream_id)
UPDATE stream SET event_time_since = :clock, complete_until = NULL, newest_event_time = NULL,
    late_events = 0, ahead_events = 0, behind_events = 0
WHERE stream_id = :stream_id
