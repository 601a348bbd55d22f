-- Where a group reads.

-- name: position -> maybe
-- Return a group that reads a stream, and where it reads next.
-- type: position = dict[str, int | str]
SELECT g.group_id, group_cut(g.group_id, gs.stream_id) AS position
FROM reader_group g JOIN reader_group_stream gs USING (group_id)
WHERE g.name = :group AND gs.stream_id = :stream_id
