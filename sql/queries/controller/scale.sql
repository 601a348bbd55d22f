-- Segments that a scale means.

-- name: known -> many
-- Return those of some segments that the stream has or had.
SELECT segment_id FROM segment WHERE stream_id = :stream_id AND segment_id = ANY(:ids)
