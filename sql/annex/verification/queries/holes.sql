-- Holes that are declared.

-- name: declared -> many
-- Return the holes that are declared in some files, each with the number of the file, from 1 on.
SELECT f.i, greatest(h.chunk * 65536 + lower(m), f.first) AS first,
    least(h.chunk * 65536 + upper(m), f.past) AS past
FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
    WITH ORDINALITY AS f (segment_id, first, past, i)
JOIN hole h ON h.stream_id = :stream_id AND h.segment_id = f.segment_id
    AND h.chunk BETWEEN f.first / 65536 AND (f.past - 1) / 65536
CROSS JOIN LATERAL unnest(h.offsets) m
WHERE h.chunk * 65536 + lower(m) < f.past AND h.chunk * 65536 + upper(m) > f.first
ORDER BY f.i, first
