-- Appends whose leases have expired, by a configured `lease` in seconds: that long after the
-- server's start none counts as expired.

-- fragment: lapsed
t.state = 'open' AND greatest(t.lease_until,
    pg_postmaster_start_time() + :lease * interval '1 second') < clock_timestamp()

-- name: lapsed -> many
-- Return the appends whose lease has expired.
SELECT stream_id, transaction_number, s.stream_name AS stream
FROM transaction t JOIN stream s USING (stream_id) WHERE {lapsed}

-- name: still_lapsed -> maybe
-- Return an append of a locked stream, if its lease has expired.
SELECT attempt, source FROM transaction t
WHERE stream_id = :stream_id AND transaction_number = :number AND {lapsed}
