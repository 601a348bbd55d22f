-- Who names the columns of a stream.

-- name: groups_of -> many GroupOf
-- Return the groups that read a stream, each with the consumer that is declared for it.
-- null: consumer
-- type: consumer = dict[str, Any]
SELECT g.name, g.consumer FROM reader_group g
JOIN reader_group_stream r USING (group_id)
WHERE r.stream_id = :stream_id AND NOT EXISTS (
    SELECT FROM adjunct_store a WHERE a.group_id = g.group_id)
ORDER BY g.name
