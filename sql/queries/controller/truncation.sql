-- Move the head of a stream.

-- fragment: below
segment s, front(:stream_id, CAST(:cut AS jsonb)) n
    WHERE f.stream_id = :stream_id AND s.stream_id = :stream_id AND s.segment_id = f.segment_id
      AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
      AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                     f.start_offset + f.events)

-- name: files_below -> one
-- Return how many files lie wholly below a cut.
SELECT count(*) FROM data_file f, {below}

-- name: move_head -> one Freed
-- Move the head of a locked stream to a checked cut, and return what was truncated: events, their
-- bytes as first committed, and how many files became garbage.
WITH below AS (
    DELETE FROM data_file f USING {below}
    RETURNING f.path, f.bytes, f.events - f.erased AS rows, f.end_hash
), freed AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes, rows, end_hash)
    SELECT '', path, :stream_id, 'truncated', bytes, rows, end_hash FROM below
), moved AS (
    UPDATE stream SET head = CAST(:cut AS jsonb) WHERE stream_id = :stream_id
)
SELECT n.events - o.events AS events, n.bytes - o.bytes AS bytes,
    (SELECT count(*) FROM below) AS files
FROM size_till(:stream_id, CAST(:cut AS jsonb)) n, size_till(:stream_id, CAST(:head AS jsonb)) o
