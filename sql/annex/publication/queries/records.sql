-- What the database keeps of publications.

-- name: before -> maybe
-- Return the last publication of a stream, and whether it is at work.
-- null: lease_until, token
SELECT number, lease_until, token,
    greatest(lease_until, pg_postmaster_start_time()) > clock_timestamp() AS busy
FROM publication WHERE stream_id = :stream_id

-- name: begin -> one
-- Begin a publication, and return its number.
-- null: :token
WITH given AS (
    UPDATE stream SET next_transaction_number = next_transaction_number + 1
    WHERE stream_id = :stream_id RETURNING next_transaction_number - 1 AS number
)
INSERT INTO publication (stream_id, number, lease_until, token)
SELECT :stream_id, number, clock_timestamp() + :lease * interval '1 second', :token
FROM given
ON CONFLICT (stream_id) DO UPDATE SET number = excluded.number,
    lease_until = excluded.lease_until, token = excluded.token
RETURNING number

-- name: discard -> none
-- Make garbage of a folder that a publication wrote.
INSERT INTO garbage (root, path, stream_id, reason)
VALUES ('', :folder, :stream_id, 'aborted') ON CONFLICT (root, path) DO NOTHING

-- name: end -> count
-- End a publication that has made nothing of the table.
-- null: :problem
UPDATE publication SET lease_until = NULL, problem = :problem
WHERE stream_id = :stream_id AND number = :number AND lease_until IS NOT NULL

-- name: held -> maybe
-- Return the last publication of a stream, whether it goes on, and what it made the table.
-- null: metadata
SELECT number, lease_until IS NOT NULL AS goes_on, metadata
FROM publication WHERE stream_id = :stream_id

-- name: are_gone -> one
-- Return whether one of some files is no file of the stream any more.
SELECT EXISTS (SELECT FROM unnest(CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:paths AS text[])) AS n (segment, start, path)
LEFT JOIN data_file f ON f.stream_id = :stream_id AND f.segment_id = n.segment
    AND f.start_offset = n.start AND f.path = n.path WHERE f.path IS NULL)

-- name: end_files -> none
-- Record that files are not in this snapshot any more.
UPDATE published_file SET until = :sequence
WHERE stream_id = :stream_id AND until IS NULL AND path = ANY (CAST(:paths AS text[]))

-- name: move_files -> none
-- Record that manifests have the other entries of others.
UPDATE published_file p SET manifest = m.new
FROM unnest(CAST(:old AS text[]), CAST(:new AS text[])) AS m (old, new)
WHERE p.stream_id = :stream_id AND p.manifest = m.old AND p.until IS NULL

-- name: add_files -> none
-- Record the files of a snapshot: data files, with their manifest, and metadata; of that some is of
-- this snapshot `only`.
-- null: :manifest
INSERT INTO published_file (stream_id, path, manifest, since, until)
SELECT :stream_id, n.path, n.manifest, :sequence, n.until FROM (
    SELECT unnest(CAST(:paths AS text[])) AS path, CAST(:manifest AS text) AS manifest,
           NULL::bigint AS until
    UNION ALL
    SELECT unnest(CAST(:new AS text[])), NULL, NULL
    UNION ALL
    SELECT unnest(CAST(:only AS text[])), NULL, :sequence + 1) n

-- name: expire -> none
-- Let what only snapshots below a sequence number name go.
SELECT expire_published(:stream_id, :below, :grace, :compacted)

-- name: publish -> none
-- Make what was written the table.
UPDATE publication SET lease_until = NULL, sequence = :sequence, root = :root,
    previous_metadata = metadata, metadata = :metadata, cut = CAST(:cut AS jsonb),
    clock = :clock, head = CAST(:head AS jsonb), events = :events, files = :files,
    compacted = :compacted, masked = CAST(:masked AS jsonb),
    schema_version = :version, published_at = clock_timestamp(), problem = NULL
WHERE stream_id = :stream_id

-- name: forget -> none
-- End the publication of a locked stream, if there is one.
SELECT forget_publication(:stream_id)
