-- How far reader groups are, and what somebody should look at.

-- name: lag_of_streams -> many Lag
-- Return how far groups are in streams, those with most to read first.
-- row: How far a reader group is in a stream.
-- null: behind_since
SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE stream = ANY(:names) ORDER BY unread_events DESC, reader_group

-- name: lag_of_groups -> many Lag
-- Return how far groups are in their streams, those with most to read first.
-- null: behind_since
SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE reader_group = ANY(:names) ORDER BY unread_events DESC, stream

-- name: alerts_of_streams -> many Alert
-- Return what somebody should look at of streams.
-- row: What somebody should look at.
SELECT stream, reader_group, alert, at, message FROM weir.retention_alerts
WHERE stream = ANY(:names) ORDER BY at, reader_group

-- name: alerts_of_groups -> many Alert
-- Return what somebody should look at of groups, which read these streams.
SELECT stream, reader_group, alert, at, message FROM weir.retention_alerts
WHERE stream = ANY(:streams) AND reader_group = ANY(:names) ORDER BY at
