-- What groups read.
-- import: from weir.controller.queries import Cut

-- name: group_streams -> many GroupStream
-- Return the streams of a group by id, also the deleted ones.
SELECT s.stream_id, s.stream_name AS name, s.state <> 'deleted' AS exists
FROM reader_group_stream gs
JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
WHERE g.name = :name ORDER BY s.stream_id

-- name: group_tails -> many GroupTail
-- Return how far a run of a group reads its streams.
-- type: tail = Cut
SELECT gs.stream_id, coalesce(gs.end_cut, tail_cut(gs.stream_id)) AS tail
FROM reader_group_stream gs
JOIN reader_group g USING (group_id) JOIN stream s USING (stream_id)
WHERE g.name = :name AND s.state <> 'deleted'
