-- Builds of versions, while they are held, and when they end.

-- name: renew -> count
-- Renew the lease of a build that is still held.
UPDATE adjunct_version
SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE store_id = :store_id AND version = :version AND attempt = :attempt AND state = 'building'

-- name: state_of -> one
-- Return the state of a version.
SELECT state FROM adjunct_version WHERE store_id = :store_id AND version = :version

-- name: publish -> none
-- Publish a version. The constraint on files is checked at the end of a statement: it inserts all.
-- null: :history_from
WITH file AS (
    INSERT INTO adjunct_file (store_id, path, kind, version, low, high, row_count, bytes)
    SELECT :store_id, f.path, f.kind, :version, f.low, f.high, f.rows, f.bytes
    FROM unnest(CAST(:paths AS text[]), CAST(:kinds AS text[]), CAST(:lows AS bigint[]),
        CAST(:highs AS bigint[]), CAST(:counts AS bigint[]), CAST(:sizes AS bigint[]))
        AS f (path, kind, low, high, rows, bytes)
), part AS (
    INSERT INTO adjunct_version_file (store_id, version, path)
    SELECT :store_id, :version, p FROM unnest(CAST(:table AS text[])) p
), superseded AS (
    UPDATE adjunct_version SET superseded_at = clock_timestamp()
    WHERE store_id = :store_id AND version <> :version AND state = 'published' AND superseded_at IS NULL
), done AS (
    UPDATE adjunct_store SET error = NULL, failed_at = NULL WHERE store_id = :store_id
)
UPDATE adjunct_version SET state = 'published', lease_until = NULL,
    published_at = clock_timestamp(), fields = CAST(:fields AS jsonb), layout = :layout,
    row_count = :rows, bytes = :bytes, events = :events, upserts = :upserts,
    deletes = :deletes, null_keys = :null_keys, failed_rows = :failed_rows,
    history_from = :history_from
WHERE store_id = :store_id AND version = :version

-- name: held -> one
-- Return whether an attempt still holds a version, or has published it.
SELECT EXISTS (
    SELECT FROM adjunct_version WHERE store_id = :store_id AND version = :version
    AND attempt = :attempt AND state IN ('building', 'published'))

-- name: fail -> none
-- Record why a build failed.
UPDATE adjunct_store SET error = :error, failed_at = clock_timestamp()
WHERE store_id = :store_id

-- name: let_go -> none
-- Let the next builder continue at once.
UPDATE adjunct_version SET lease_until = clock_timestamp(),
    silent_attempts = 0
WHERE store_id = :store_id AND version = :version AND attempt = :attempt
  AND state = 'building'
