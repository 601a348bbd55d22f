-- Batches that are halved by rank.

-- name: segments_of -> many SegmentOf
-- Return segments with their keys.
SELECT g.stream_id, g.segment_id, g.key_low, g.key_high
FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
    AS b (stream_id, segment_id)
JOIN segment g USING (stream_id, segment_id)
