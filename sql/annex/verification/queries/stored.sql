-- What the database records of the files of streams.
-- import: from weir.annex.verification.recorded import Damage
-- import: from weir.annex.verification.recorded import Commit
-- import: from weir.annex.verification.recorded import File
-- import: from weir.model.schema import Field

-- fragment: file
f.segment_id, f.start_offset, f.events, f.bytes, f.first_seq, f.last_seq, f.schema_version, f.path,
    f.end_hash, f.file_hash, f.transaction_number IS NULL AS compacted, s.key_low, s.key_high,
    f.erased

-- fragment: its_segment
CROSS JOIN LATERAL (
    SELECT o.key_low, o.key_high FROM segment o
    WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s

-- name: stream -> maybe
-- Return the name and the routing key of a stream.
SELECT stream_name, routing_key FROM stream WHERE stream_id = :stream_id AND state <> 'deleted'

-- name: versions -> many
-- Return the versions of a stream's schema.
-- type: fields = list[Field]
SELECT version, fields FROM stream_schema WHERE stream_id = :stream_id

-- name: files_after -> many File
-- Return files of a stream after a file, by segment and offset.
SELECT {file} FROM data_file f {its_segment}
WHERE f.stream_id = :stream_id AND (f.segment_id, f.start_offset) > (:segment, :offset)
ORDER BY f.segment_id, f.start_offset LIMIT :most

-- name: commits -> many Commit
-- Return the commits of the events from an offset of one segment to an offset of another.
SELECT g.segment_id, i.start_offset, i.events, i.clock, i.digest
FROM segment g CROSS JOIN LATERAL commits_in(:stream_id, g.segment_id,
    CASE WHEN g.segment_id = :low THEN CAST(:first AS bigint) ELSE 0 END,
    CASE WHEN g.segment_id = :high THEN CAST(:past AS bigint)
         ELSE 9223372036854775807 END) i
WHERE g.stream_id = :stream_id AND g.segment_id BETWEEN :low AND :high
ORDER BY g.segment_id, i.start_offset

-- name: wrong_offsets -> many Damage
-- Return the files of a stream whose offsets are not those that follow the file before, or that do
-- not reach from the head to the tail, or whose segment has holes that it can't have. Looked at are
-- the segments that have files; a file may straddle the head.
WITH file AS (
    SELECT f.*, lag(f.start_offset + f.events) OVER w AS before, lead(f.start_offset) OVER w AS next
    FROM data_file f WHERE f.stream_id = :stream_id
    WINDOW w AS (PARTITION BY f.segment_id ORDER BY f.start_offset)
), wrong AS (
    SELECT f.*, CASE
        WHEN f.before < f.start_offset THEN format(
            'no file has offsets %s to %s before it', f.before, f.start_offset - 1)
        WHEN f.before > f.start_offset THEN format(
            'the file before it has offsets up to %s, too', f.before - 1)
        WHEN f.before IS NULL AND f.start_offset > coalesce(h.event_offset, 0) THEN format(
            'no file has offsets %s to %s before it', coalesce(h.event_offset, 0),
            f.start_offset - 1)
        WHEN f.next IS NULL AND f.start_offset + f.events <> z.tail THEN format(
            'it ends at offset %s, but its segment at %s', f.start_offset + f.events, z.tail)
        WHEN f.next IS NULL AND EXISTS (
            SELECT FROM hole o WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id
              AND (o.chunk < 0 OR lower(o.offsets) < 0 OR upper(o.offsets) > 65536
                   OR o.chunk * 65536 + upper(o.offsets) > z.tail
                   OR o.events <> (SELECT sum(upper(m) - lower(m)) FROM unnest(o.offsets) m)))
        THEN 'holes of its segment are declared where it has no offsets, or counted wrong'
        END AS what
    FROM file f
    LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :stream_id) h
        ON h.segment_id = f.segment_id
    CROSS JOIN LATERAL (SELECT (
        SELECT i.start_offset + i.events
        FROM commit_at(f.stream_id, f.segment_id, 9223372036854775807) i
        WHERE f.next IS NULL) AS tail OFFSET 0) z
)
SELECT 'offsets' AS kind, f.path, f.what, f.segment_id, f.start_offset, f.events
FROM wrong f JOIN segment s USING (stream_id, segment_id) WHERE f.what IS NOT NULL
ORDER BY f.segment_id, f.start_offset
