-- What a retention would delete.

-- name: would_truncate -> maybe
-- Return what the next run would truncate of a stream, and how much each group would lose.
-- type: lost = dict[str, int]
SELECT d.events, d.lost || unread_events_lost(:stream_id, d.cut, false) AS lost
FROM retention_dry_run(:stream) d WHERE d.cut IS NOT NULL
