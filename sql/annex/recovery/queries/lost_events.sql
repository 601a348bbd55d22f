-- Who has not read lost events.

-- name: positions -> many
-- Return where reader groups are in a stream.
-- null: next_offset
SELECT g.name, p.next_offset, s.segment_id, s.key_low, s.key_high
FROM reader_group_segment p JOIN reader_group g USING (group_id)
JOIN segment s USING (stream_id, segment_id)
WHERE p.stream_id = :stream_id AND p.state <> 'completed'
