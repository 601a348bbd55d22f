-- Who publishes a stream, and the transaction that makes a new snapshot the table.

-- name: publication -> maybe
-- Return the publication of a stream.
-- null: lease_until, token, busy, metadata
SELECT number, lease_until, token, metadata,
    greatest(lease_until, pg_postmaster_start_time()) > clock_timestamp() AS busy
FROM publication WHERE stream_id = :stream_id

-- name: begin -> one
-- Begin a publication of a stream, and return its number.
-- null: :token
WITH given AS (
    UPDATE stream SET next_transaction_number = next_transaction_number + 1
    WHERE stream_id = :stream_id RETURNING next_transaction_number - 1 AS number
)
INSERT INTO publication (stream_id, number, lease_until, token)
SELECT :stream_id, number, clock_timestamp() + CAST(:lease AS double precision) * interval '1 second', :token
FROM given
ON CONFLICT (stream_id) DO UPDATE SET number = excluded.number,
    lease_until = excluded.lease_until, token = excluded.token
RETURNING number

-- name: discard -> none
-- Make garbage of what a publication wrote.
INSERT INTO garbage (root, path, stream_id, reason)
VALUES ('', :folder, :stream_id, 'aborted') ON CONFLICT (root, path) DO NOTHING

-- name: end -> count
-- End a publication that is at work.
-- null: :problem
UPDATE publication SET lease_until = NULL, problem = :problem
WHERE stream_id = :stream_id AND number = :number AND lease_until IS NOT NULL

-- name: is_overtaken -> one
-- Return whether one of some files is not the stream's any more.
SELECT EXISTS (SELECT FROM unnest(CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:paths AS text[])) AS n (segment, start, path)
LEFT JOIN data_file f ON f.stream_id = :stream_id AND f.segment_id = n.segment
    AND f.start_offset = n.start AND f.path = n.path WHERE f.path IS NULL) AS is_overtaken

-- name: drop_files -> none
-- Record that the new snapshot names some files no more.
UPDATE published_file SET until = :sequence
WHERE stream_id = :stream_id AND until IS NULL AND path = ANY (CAST(:ended AS text[]))

-- name: move_files -> none
-- Record the manifests that list files now, by those that did.
UPDATE published_file p SET manifest = m.new
FROM unnest(CAST(:old AS text[]), CAST(:new AS text[])) AS m (old, new)
WHERE p.stream_id = :stream_id AND p.manifest = m.old AND p.until IS NULL

-- name: add_files -> none
-- Record files that the new snapshot names, or names alone (`only`).
-- type: :manifests = Sequence[str | None]
INSERT INTO published_file (stream_id, path, manifest, since, until)
SELECT :stream_id, n.path, n.manifest, :sequence,
    CASE WHEN n.once THEN CAST(:sequence AS bigint) + 1 END
FROM unnest(CAST(:paths AS text[]), CAST(:manifests AS text[]),
            CAST(:only AS boolean[])) AS n (path, manifest, once)

-- name: expire -> one
-- Forget what only snapshots below a sequence number named, and return how many files that were.
SELECT expire_published(:stream_id, :below, :grace, :compacted) AS files

-- name: commit -> none
-- Make what was written the table.
UPDATE publication SET lease_until = NULL, sequence = :sequence, root = :root,
    previous_metadata = metadata, metadata = :metadata, cut = CAST(:cut AS jsonb),
    clock = :clock, head = CAST(:head AS jsonb), events = :events, files = :files,
    compacted = :compacted, masked = CAST(:masked AS jsonb),
    schema_version = :version, published_at = clock_timestamp(), problem = NULL
WHERE stream_id = :stream_id

-- name: forget -> one
-- End the publication of a locked stream, if there is one.
SELECT forget_publication(:stream_id) AS ended
