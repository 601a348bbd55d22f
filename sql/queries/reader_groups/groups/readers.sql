-- Readers of a group: who is there.

-- name: other_reader -> maybe
-- Return another reader of a group: a streaming query rather than others.
SELECT reader_id, lease_until = 'infinity' AS query, joined_at FROM reader
WHERE group_id = :group_id AND reader_id <> :reader_id
ORDER BY lease_until DESC, reader_id LIMIT 1

-- name: renew -> count
-- Renew a reader's lease by `lease` seconds.
UPDATE reader r SET lease_until = clock_timestamp() + :lease * interval '1 second'
FROM reader_group g WHERE g.name = :group AND r.group_id = g.group_id
  AND r.reader_id = :reader_id AND r.token = :token
