-- Which streams are to be published, and how each differs from what is published of it.
-- import: from weir.model.schema import Field

-- name: due -> many Due
-- Return the streams to publish, and those whose publication is to end. `names`: of these; null: of
-- all.
-- row: A stream that is to be published, or whose publication is to be ended.
-- null: :names
SELECT stream_id, stream, wanted FROM streams_to_publish(CAST(:names AS text[])) ORDER BY 2

-- name: state -> one State
-- Return a stream as it is, beside what is published of it.
-- row: A stream at one moment. `number`: of the last publication; 0: there was none. `rows`: from
-- row: head to tail. `files`: that the newest snapshot has. `published_masked`: rows that it leaves
-- row: out at the beginning of files.
-- null: root, metadata, published_cut, published_head, published_version
-- type: cut = dict[str, Any]
-- type: head = dict[str, Any]
-- type: published_cut = dict[str, Any]
-- type: published_head = dict[str, Any]
-- type: published_masked = dict[str, int]
SELECT coalesce(p.number, 0) AS number, coalesce(p.sequence, 0) AS sequence, p.root,
    p.metadata, tail_cut(s.stream_id) AS cut, s.last_clock AS clock, s.head,
    p.cut AS published_cut, p.head AS published_head, coalesce(p.files, 0) AS files,
    t.events, t.events - h.events AS rows,
    coalesce(p.compacted, 0) AS published_compacted,
    coalesce((SELECT max(c.number) FROM compaction c
              WHERE c.stream_id = s.stream_id AND c.state = 'done'), 0) AS compacted,
    s.schema_version, p.schema_version AS published_version, s.stream_name,
    coalesce(p.masked, '{}') AS published_masked
FROM stream s LEFT JOIN publication p USING (stream_id)
CROSS JOIN LATERAL size_till(s.stream_id, tail_cut(s.stream_id)) t
CROSS JOIN LATERAL size_till(s.stream_id, s.head) h WHERE s.stream_id = :stream_id

-- name: appended -> many File
-- Return the files between two cuts.
-- row: A data file of a stream.
SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased AS events, f.bytes
FROM segments_between(CAST(:stream_id AS bigint), CAST(:since AS jsonb), CAST(:until AS jsonb)) b
CROSS JOIN LATERAL (
    SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = b.segment_id
    AND d.start_offset >= b.from_offset AND d.start_offset < b.to_offset OFFSET 0) f
ORDER BY f.segment_id, f.start_offset

-- name: unpublished -> many File
-- Return the files that are not published.
SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased AS events, f.bytes
FROM data_file f
LEFT JOIN published_file p ON p.stream_id = f.stream_id AND p.path = f.path
WHERE f.stream_id = :stream_id AND p.path IS NULL ORDER BY f.segment_id, f.start_offset

-- name: removed -> many
-- Return the files that are published and not the stream's any more, by manifest.
SELECT p.manifest, p.path FROM published_file p
LEFT JOIN data_file f ON f.stream_id = p.stream_id AND f.path = p.path
WHERE p.stream_id = :stream_id AND p.manifest IS NOT NULL AND p.until IS NULL
    AND f.path IS NULL ORDER BY p.manifest, p.path

-- name: masked -> many
-- Return how many rows of each file that straddles the head lie below it.
SELECT f.path, h.event_offset - f.start_offset - CASE WHEN f.erased = 0 THEN 0
    ELSE holes_in(:stream_id, f.segment_id, f.start_offset, h.event_offset) END AS rows
FROM stream s CROSS JOIN LATERAL cut_entries(s.head) h
CROSS JOIN LATERAL (
    SELECT * FROM data_file d WHERE d.stream_id = :stream_id AND d.segment_id = h.segment_id
    AND d.start_offset < h.event_offset ORDER BY d.start_offset DESC LIMIT 1) f
WHERE s.stream_id = :stream_id AND f.start_offset + f.events > h.event_offset

-- name: versions -> many
-- Return the versions of the columns, the newest last.
-- type: fields = list[Field]
SELECT version, fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version

-- name: used_versions -> many
-- Return those of some versions of which files are.
SELECT DISTINCT schema_version FROM data_file
WHERE stream_id = :stream_id AND schema_version = ANY (:versions)

-- name: expires -> one
-- Return the sequence number below which snapshots must go.
SELECT snapshots_expire_below(:stream_id, :grace, :compacted)

-- name: truncated -> one
-- Return whether one of some files that are not the stream's any more was not compacted.
SELECT EXISTS (SELECT FROM unnest(CAST(:paths AS text[])) AS r (path)
LEFT JOIN garbage g ON g.root = '' AND g.path = r.path
WHERE g.reason IS DISTINCT FROM 'compacted')
