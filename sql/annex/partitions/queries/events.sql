-- Of which commits the events of hours and days are.

-- name: commits_between -> maybe
-- Return the first and the last clock of the commits of a stream with event times from one up to another.
-- null: event_time, first, last
SELECT s.event_time, min(t.clock) AS first, max(t.clock) AS last
FROM stream s LEFT JOIN transaction t ON t.stream_name = s.stream_name
    AND t.clock > s.event_time_since AND t.min_event_time < :high AND t.max_event_time >= :low
WHERE s.stream_name = :stream AND s.state <> 'deleted' GROUP BY s.stream_id

-- name: commit -> maybe
-- Return the event times of a commit.
-- null: event_time
SELECT s.event_time, t.clock, t.min_event_time, t.max_event_time
FROM stream s JOIN transaction t ON t.stream_id = s.stream_id
WHERE s.stream_name = :stream AND s.state <> 'deleted' AND t.transaction_number = :number
