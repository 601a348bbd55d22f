-- The damage that was found, and up to which file contents were verified.

-- name: forget -> none
-- Forget damage that was found earlier, of some kinds in files that were looked at (null: all), and
-- of files that the stream has no more.
-- null: :stream_id, :looked_at
DELETE FROM found_damage d WHERE d.stream_id IS NOT DISTINCT FROM CAST(:stream_id AS bigint)
  AND (d.kind = ANY(CAST(:kinds AS text[]))
       AND (CAST(:looked_at AS text[]) IS NULL OR d.path = ANY(CAST(:looked_at AS text[])))
       AND NOT EXISTS (
           SELECT FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[])) AS f (path, kind)
           WHERE f.path = d.path AND f.kind = d.kind)
       OR d.segment_id IS NOT NULL AND NOT EXISTS (
           SELECT FROM data_file f WHERE f.stream_id = d.stream_id
             AND f.segment_id = d.segment_id AND f.start_offset = d.start_offset
             AND f.path = d.path))

-- name: record -> many
-- Record damage, and return that of files that the stream still has.
-- null: :stream_id
-- type: :segment = Sequence[int | None]
-- type: :offset = Sequence[int | None]
-- type: :events = Sequence[int | None]
WITH found AS (
    SELECT * FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[]), CAST(:what AS text[]),
        CAST(:segment AS bigint[]), CAST(:offset AS bigint[]), CAST(:events AS bigint[]))
        AS f (path, kind, what, segment_id, start_offset, events)
    WHERE f.segment_id IS NULL OR EXISTS (  -- it may be another file's by now
        SELECT FROM data_file d WHERE d.stream_id = CAST(:stream_id AS bigint) AND d.segment_id = f.segment_id
          AND d.start_offset = f.start_offset AND d.path = f.path)
)
INSERT INTO found_damage (path, kind, stream_id, segment_id, start_offset, events, what)
SELECT f.path, f.kind, CAST(:stream_id AS bigint), f.segment_id, f.start_offset, f.events, f.what FROM found f
ON CONFLICT (path, kind) DO UPDATE SET what = excluded.what, seen_at = excluded.seen_at,
    segment_id = excluded.segment_id, start_offset = excluded.start_offset,
    events = excluded.events
RETURNING path, kind

-- name: record_hashes -> none
-- Record the hashes of all bytes of files.
UPDATE data_file d SET file_hash = f.hash
FROM unnest(CAST(:segments AS bigint[]), CAST(:offsets AS bigint[]),
    CAST(:paths AS text[]), CAST(:hashes AS bigint[])) AS f (segment, offs, path, hash)
WHERE d.stream_id = :stream_id AND d.segment_id = f.segment AND d.start_offset = f.offs
  AND d.path = f.path AND d.file_hash IS NULL

-- name: position -> maybe
-- Return the file up to which contents were verified.
SELECT segment_id, start_offset FROM verification WHERE stream_id = :stream_id

-- name: move -> none
-- Record up to which file contents were verified, and whether that is the last one.
INSERT INTO verification (stream_id, begun_at, segment_id, start_offset, completed_at)
VALUES (:stream_id, clock_timestamp(), :segment, :offset,
    CASE WHEN :done THEN clock_timestamp() END)
ON CONFLICT (stream_id) DO UPDATE SET begun_at = excluded.begun_at,
    segment_id = excluded.segment_id, start_offset = excluded.start_offset,
    completed_at = coalesce(excluded.completed_at, verification.completed_at)

-- name: in_turn -> many
-- Return the streams with files, the one first whose files were not looked at for longest.
SELECT s.stream_id FROM stream s LEFT JOIN verification v USING (stream_id)
WHERE s.state <> 'deleted' AND EXISTS (
    SELECT FROM data_file f WHERE f.stream_id = s.stream_id)
  AND (v.segment_id >= 0 OR v.completed_at IS NULL OR v.completed_at
       <= clock_timestamp() - CAST(:again_after AS double precision) * interval '1 second')
ORDER BY coalesce(v.segment_id, -1) < 0, v.completed_at NULLS FIRST, s.stream_id

-- name: damaged -> many
-- Return the streams of which damage is recorded.
-- null: stream_id
SELECT DISTINCT stream_id FROM found_damage

-- name: with_strangers -> many
-- Return the streams in whose folders something of some kinds was found.
-- null: stream_id
SELECT DISTINCT stream_id FROM found_damage WHERE kind = ANY(CAST(:kinds AS text[]))

-- name: missing -> many
-- Return the files that are known to be missing.
SELECT f.bytes, f.end_hash, f.path FROM found_damage d
JOIN data_file f USING (stream_id, segment_id, start_offset)
WHERE d.kind = 'missing' AND d.path = f.path AND f.end_hash IS NOT NULL

-- name: is_there -> one
-- Return whether there is a stream.
SELECT EXISTS (SELECT FROM stream WHERE stream_id = :stream_id AND state <> 'deleted') AS is_there

-- name: declared -> many
-- Return the holes that are declared in some ranges of offsets, by the number of the range.
SELECT f.i, greatest(h.chunk * 65536 + lower(m), f.first) AS first,
    least(h.chunk * 65536 + upper(m), f.past) AS past
FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
    WITH ORDINALITY AS f (segment_id, first, past, i)
JOIN hole h ON h.stream_id = :stream_id AND h.segment_id = f.segment_id
    AND h.chunk BETWEEN f.first / 65536 AND (f.past - 1) / 65536
CROSS JOIN LATERAL unnest(h.offsets) m
WHERE h.chunk * 65536 + lower(m) < f.past AND h.chunk * 65536 + upper(m) > f.first
ORDER BY f.i, first
