-- Appends whose leases have expired, by a configured `lease` in seconds.

-- fragment: lapsed
t.state = 'open' AND lease_is_over(t.lease_until, :lease)

-- name: lapsed -> many
-- Return the appends whose lease has expired.
SELECT stream_id, transaction_number, s.stream_name AS stream
FROM transaction t JOIN stream s USING (stream_id) WHERE {lapsed}

-- name: still_lapsed -> maybe
-- Return an append of a locked stream, if its lease has expired.
SELECT attempt, source FROM transaction t
WHERE stream_id = :stream_id AND transaction_number = :number AND {lapsed}
