-- What an answer lacks because it was truncated: the last truncation is null if it is not recorded.

-- name: between -> one
-- Return what was truncated of what was committed after a time and up to another.
-- null: truncated_at, reason, :since, :until
SELECT events, truncated_at, reason FROM truncated_between(
    :stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))

-- name: within -> maybe
-- Return what was truncated between two points of a stream, each a cut or a time.
-- null: truncated_at, reason, :start, :start_cut, :end, :end_cut
SELECT stream_name AS stream, p.events, p.truncated_at, p.reason FROM stream
CROSS JOIN LATERAL size_till(stream_id, head) z
CROSS JOIN LATERAL truncated_part(stream_id,
    CASE WHEN CAST(:start_cut AS jsonb) IS NOT NULL
        THEN truncated_from(stream_id, CAST(:start_cut AS jsonb))
    WHEN CAST(:start AS timestamptz) IS NOT NULL
        THEN truncated_after(stream_id, time_clock(CAST(:start AS timestamptz))) END,
    CASE WHEN CAST(:end_cut AS jsonb) IS NOT NULL
        THEN truncated_from(stream_id, CAST(:end_cut AS jsonb))
    WHEN CAST(:end AS timestamptz) IS NOT NULL
        THEN truncated_after(stream_id, time_clock(CAST(:end AS timestamptz))) ELSE 0 END) p
WHERE stream_id = :stream_id AND z.events > 0

-- name: truncations -> many Truncation
-- Return the last truncations of a stream, 1,000 at most, the newest first.
-- type: head = dict[str, int | str]
SELECT head, truncated_at, reason FROM weir.truncations
WHERE stream = :stream ORDER BY truncated_at DESC LIMIT 1000
