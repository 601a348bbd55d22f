-- Which event times commits have that may be late.

-- name: commit -> maybe
-- Return the event times of a commit.
-- null: event_time
SELECT s.event_time, t.clock, t.min_event_time, t.max_event_time
FROM stream s JOIN transaction t ON t.stream_id = s.stream_id
WHERE s.stream_name = :stream AND s.state <> 'deleted' AND t.transaction_number = :number
