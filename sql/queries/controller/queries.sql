-- Questions about a stream (semantics 8).

-- name: segments_between -> many Between
-- Return what to read from one cut (null: the head) to another (null: the tail).
-- null: :start, :end
SELECT segment, segment_id, key_low, key_high, from_offset, to_offset
FROM segments_between(:stream, CAST(:start AS jsonb), CAST(:end AS jsonb))

-- name: stream_cut_at -> one
-- Return the cut that was the tail at a time, or the head if that is later (semantics 8.4).
-- type: stream_cut_at = dict[str, int | str]
SELECT stream_cut_at(:stream, CAST(:at AS timestamptz))

-- name: count_between -> one
-- Close the later time, and return how many events that can be read were committed between them.
-- null: :since, :until
SELECT count_between(:stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))

-- name: stream_info -> maybe
-- Return the ends of a stream.
-- type: head = dict[str, int | str]
-- type: tail = dict[str, int | str]
SELECT head, tail FROM streams WHERE stream = :stream
