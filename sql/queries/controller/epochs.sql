-- Epochs: which segments tile the key space, and the step from one epoch to the next.
-- import: from weir.model.segment import Segment

-- name: active_segments -> many Segment
-- Return the segments of a stream's current epoch, by key.
SELECT t.segment_id, s.key_low, s.key_high
FROM segment_tail t JOIN segment s USING (stream_id, segment_id)
WHERE t.stream_id = :stream_id ORDER BY s.key_low

-- name: segments_at -> many Segment
-- Return the segments that tiled [0, 1) in an epoch, by key (semantics 8.3).
SELECT segment_id, key_low, key_high FROM active_segments_at(:stream_id, :epoch) ORDER BY key_low

-- name: tick -> one
-- Issue the next clock of a locked stream and return it, in microseconds (semantics 16.1).
UPDATE stream SET last_clock = greatest(last_clock + 1, now_clock())
WHERE stream_id = :stream_id RETURNING last_clock

-- name: close -> none
-- Close a time of locked streams: no later commit gets a clock at or before `clock` (semantics
-- 8.4). Refuses a future time (InvalidInput).
SELECT close_streams(CAST(:stream_ids AS bigint[]), :clock)

-- name: next_epoch -> none
-- Seal segments at their tails, create others, and make `epoch`, the current one plus 1, current.
WITH gone AS (
    DELETE FROM segment_tail WHERE stream_id = :stream_id AND segment_id = ANY(:seal)
    RETURNING segment_id, tail_offset, tail_bytes
), sealed AS (
    UPDATE segment s
    SET sealed_epoch = :epoch, sealed_clock = :clock, events = g.tail_offset, bytes = g.tail_bytes
    FROM gone g WHERE s.stream_id = :stream_id AND s.segment_id = g.segment_id
), made AS (
    INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
    SELECT :stream_id, :stream, * FROM unnest(CAST(:ids AS bigint[]),
        CAST(:lows AS double precision[]), CAST(:highs AS double precision[]))
    RETURNING segment_id
), tails AS (
    INSERT INTO segment_tail (stream_id, segment_id) SELECT :stream_id, segment_id FROM made
), moved AS (
    INSERT INTO capture_queue (stream_id) VALUES (:stream_id)
), entered AS (
    INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, splits, merges,
                       sealed_events, sealed_bytes, cause, reason, request_id)
    SELECT :stream_id, p.stream_name, :epoch, :reference_epoch, :clock,
           p.splits + :splits, p.merges + :merges,
           p.sealed_events + (SELECT coalesce(sum(tail_offset), 0) FROM gone),
           p.sealed_bytes + (SELECT coalesce(sum(tail_bytes), 0) FROM gone),
           :cause, :reason, :request_id
    FROM epoch p WHERE p.stream_id = :stream_id AND p.epoch = :epoch - 1
)
UPDATE stream SET current_epoch = :epoch, next_segment_number = :next_segment_number
WHERE stream_id = :stream_id
