-- Versions of adjunct stores that expire.

-- name: due -> many Due
-- Return the stores of which a version was superseded, or has changes, long enough ago.
SELECT store_id, name FROM stores_with_expired(:before) ORDER BY 1

-- name: first_due -> one FirstDue
-- Return whether a version may be due, and when it was superseded: few were before that.
-- null: before, due
SELECT n.before, EXISTS (SELECT FROM adjunct_version WHERE history_from IS NOT NULL)
    OR (SELECT min(superseded_at) FROM adjunct_version
        WHERE state = 'published' AND superseded_at IS NOT NULL) <= n.before AS due
FROM (SELECT clock_timestamp() - min(keep_versions) * interval '1 second' AS before
      FROM adjunct_store) n

-- name: versions -> many Kept
-- Return the versions of a store that have a table or a history.
-- null: superseded, history_from
SELECT version, definition || '/' || coalesce(code, '') AS line, clock,
    time_clock(superseded_at) AS superseded, state = 'published' AS published, history_from
FROM adjunct_version
WHERE store_id = :store_id AND (state = 'published' OR state = 'expired' AND history_from IS NOT NULL)
ORDER BY version

-- name: pins -> many Pinned
-- Return the versions that open batches are read with.
-- null: since
SELECT p.version, p.since, v.definition || '/' || coalesce(v.code, '') AS line
FROM adjunct_pin p JOIN reader_batch b USING (group_id, batch_id)
JOIN adjunct_version v ON v.store_id = p.store_id AND v.version = p.version
WHERE p.store_id = :store_id AND b.state = 'open'

-- name: expire -> none
-- Let tables and histories of versions expire; their files become garbage.
WITH unlisted AS (
    DELETE FROM adjunct_version_file WHERE store_id = :store_id AND version = ANY(:tables)
    RETURNING path
), freed AS (
    DELETE FROM adjunct_file f WHERE f.store_id = :store_id
      AND (f.kind = 'history' AND f.version = ANY(:histories)
           OR f.kind = 'table' AND f.path IN (SELECT path FROM unlisted)
              AND NOT EXISTS (
                  SELECT FROM adjunct_version_file o
                  WHERE o.store_id = :store_id AND o.path = f.path AND o.version <> ALL(:tables)))
    RETURNING path, bytes
), garbage AS (
    INSERT INTO garbage (root, path, stream_id, reason, bytes)
    SELECT '', path, NULL, 'expired', bytes FROM freed ON CONFLICT (root, path) DO NOTHING
), without_history AS (
    UPDATE adjunct_version SET history_from = NULL
    WHERE store_id = :store_id AND version = ANY(:histories) AND version <> ALL(:tables)
)
UPDATE adjunct_version SET state = 'expired', ended_at = clock_timestamp(),
    history_from = CASE WHEN version <> ALL(:histories) THEN history_from END
WHERE store_id = :store_id AND version = ANY(:tables)

-- name: settings -> one Settings
-- Return for how long a store keeps versions and changes.
-- null: history
SELECT keep_versions, history, time_clock(clock_timestamp()) AS now
FROM adjunct_store WHERE store_id = :store_id

-- name: prune -> count
-- Delete the rows of versions that ended long ago, and that no batch names.
DELETE FROM adjunct_version v
WHERE v.state IN ('expired', 'abandoned') AND v.history_from IS NULL
  AND v.ended_at < clock_timestamp() - :age * interval '1 second'
  AND NOT EXISTS (SELECT FROM adjunct_pin p
                  WHERE p.store_id = v.store_id AND p.version = v.version)
