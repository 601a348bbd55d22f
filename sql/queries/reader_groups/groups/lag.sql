-- How far groups are.

-- name: lag -> many Lag
-- Return how far groups are in each of their streams.
-- null: seconds, waiting
SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
    extract(epoch FROM lag)::double precision AS seconds,
    extract(epoch FROM waiting)::double precision AS waiting
FROM lag WHERE reader_group = ANY(:groups) ORDER BY reader_group, stream
