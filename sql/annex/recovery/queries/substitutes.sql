-- What can take the place of missing files, and what is said of it then.
-- import: from weir.model.compaction import Small

-- name: recorded -> many Small
-- Return the files of the segments of missing ones, without those of which events were erased: what
-- was erased is in the files that were replaced, and these do not come back.
SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
    f.transaction_number, t.clock, f.path, f.erased
FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
WHERE f.stream_id = :stream_id AND f.erased = 0 AND f.segment_id IN (
    SELECT m.segment_id FROM data_file m WHERE m.stream_id = :stream_id AND m.path = ANY (:paths))
ORDER BY f.segment_id, f.start_offset

-- name: commits -> many RecordedCommit
-- Return the commits of a segment between two offsets.
SELECT c.start_offset, c.start_offset + c.events AS past, c.clock, c.transaction_number
FROM commits_in(:stream_id, :segment, :first, :past) c ORDER BY c.start_offset

-- fragment: written
unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:pasts AS bigint[]))
        AS w (segment_id, first, past)

-- name: forget_digests -> none
-- Forget the digests of commits between some offsets.
UPDATE time_index i SET digest = NULL FROM {written}
WHERE i.stream_id = :stream_id AND i.segment_id = w.segment_id
    AND i.start_offset < w.past AND i.start_offset + i.events > w.first

-- name: forget_packed_digests -> none
-- Forget the digests of commits between some offsets, of commits that are packed.
UPDATE packed_commits p SET digests = (
    SELECT array_agg(CASE WHEN NOT EXISTS (
        SELECT FROM {written} WHERE w.segment_id = p.segment_id AND p.offsets[d.i] < w.past
            AND coalesce(p.offsets[d.i + 1], p.past) > w.first) THEN d.digest END ORDER BY d.i)
    FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i))
WHERE p.stream_id = :stream_id AND EXISTS (
    SELECT FROM {written} WHERE w.segment_id = p.segment_id
        AND p.start_offset < w.past AND p.past > w.first)
