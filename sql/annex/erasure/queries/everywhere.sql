-- What an erasure asks of a whole installation.

-- name: events -> one
-- Return how many events a stream has files of.
SELECT coalesce(sum(events - erased), 0)::bigint FROM data_file WHERE stream_id = :stream_id

-- name: may_sweep -> one
-- Return whether this login may sweep.
SELECT has_column_privilege('installation', 'sweep_count', 'UPDATE') AND sees_all(current_user)

-- name: published -> many
-- Return those of some streams that are published.
SELECT scope, name FROM stream
WHERE stream_id = ANY(:streams) AND publish <> 'none' AND state <> 'deleted'
