-- Holes of segments.

-- name: add_holes -> one
-- Record holes, as multiranges in chunks of segments. Return how many of them were none before.
SELECT add_holes(:stream_id, CAST(:segments AS bigint[]), CAST(:chunks AS bigint[]),
    CAST(:offsets AS int4multirange[]))
