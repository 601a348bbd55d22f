-- Adjunct stores with rows of keys that are erased.
-- import: from weir.model.schema import Field

-- name: stores -> many FoundStore
-- Return the stores of some streams, with all keys and columns that their versions have.
-- null: fields
-- type: fields = list[Field]
SELECT s.name, s.store_id, s.stream_id,
    array(SELECT DISTINCT coalesce(d.key, '') FROM adjunct_definition d
        WHERE d.store_id = s.store_id AND (d.definition = s.definition OR EXISTS (
            SELECT FROM adjunct_version o WHERE o.store_id = s.store_id
                AND o.definition = d.definition
                AND (o.state = 'published' OR o.history_from IS NOT NULL)))) AS keys,
    (SELECT jsonb_agg(DISTINCT f) FROM adjunct_version o
        CROSS JOIN LATERAL jsonb_array_elements(o.fields) f
        WHERE o.store_id = s.store_id
            AND (o.state = 'published' OR o.history_from IS NOT NULL)) AS fields
FROM adjunct_store s
WHERE s.stream_id = ANY(:streams) ORDER BY s.name

-- name: key_types -> many
-- Return the types of the keys in the files of a store.
SELECT DISTINCT v.fields -> 0 ->> 'type' AS type FROM adjunct_file f
JOIN adjunct_version v USING (store_id, version)
WHERE f.store_id = :store_id AND v.fields IS NOT NULL ORDER BY 1

-- name: files -> many
-- Return the files of a store that may have keys of some hashes; without hashes, all.
-- null: :hashes
SELECT f.path FROM adjunct_file f
WHERE f.store_id = :store_id AND (CAST(:hashes AS bigint[]) IS NULL OR EXISTS (
    SELECT FROM unnest(CAST(:hashes AS bigint[])) h
    WHERE h BETWEEN f.low AND f.high)) ORDER BY f.path

-- name: is_building -> one
-- Return whether a version of a store is being built.
SELECT EXISTS (SELECT FROM adjunct_version WHERE store_id = :store_id AND state = 'building')

-- name: make_garbage -> none
-- Let a file count as garbage that is yet to be written.
INSERT INTO garbage (root, path, reason) VALUES ('', :path, 'aborted')
ON CONFLICT (root, path) DO NOTHING

-- name: take_from_garbage -> count
-- Let files count that are written. Returns how many nobody has swept meanwhile.
DELETE FROM garbage WHERE root = '' AND path = ANY(CAST(:paths AS text[]))

-- fragment: new
-- What takes the place of files.
jsonb_to_recordset(CAST(:new AS jsonb)) AS n (old text, path text, rows bigint, bytes bigint,
        low bigint, high bigint, erased bigint)

-- name: add_files -> none
-- Record new files.
INSERT INTO adjunct_file (store_id, path, kind, version, low, high, row_count, bytes)
SELECT f.store_id, n.path, f.kind, f.version, n.low, n.high, n.rows, n.bytes
FROM {new} JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
WHERE n.path IS NOT NULL

-- name: count_less -> none
-- Record what versions have without the rows.
UPDATE adjunct_version v SET row_count = v.row_count - g.erased, bytes = v.bytes - g.freed
FROM (SELECT o.version, sum(n.erased) AS erased, sum(f.bytes - n.bytes) AS freed
      FROM {new} JOIN adjunct_version_file o ON o.store_id = :store_id AND o.path = n.old
      JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
      GROUP BY o.version) g
WHERE v.store_id = :store_id AND v.version = g.version

-- name: add_to_versions -> none
-- Let versions have the new files.
INSERT INTO adjunct_version_file (store_id, version, path)
SELECT o.store_id, o.version, n.path
FROM {new} JOIN adjunct_version_file o ON o.store_id = :store_id AND o.path = n.old
WHERE n.path IS NOT NULL

-- name: discard_files -> none
-- Make garbage of the old files. One may be read by a batch that another stream's events are joined
-- in: it is read again.
INSERT INTO garbage (root, path, stream_id, reason, bytes)
SELECT '', f.path, :stream_id, 'erased', f.bytes
FROM {new} JOIN adjunct_file f ON f.store_id = :store_id AND f.path = n.old
ON CONFLICT (root, path) DO NOTHING

-- name: let_garbage_go -> none
-- Let what has expired of the store go without a grace period: it has the rows, too.
UPDATE garbage SET reason = 'erased', stream_id = :stream_id
WHERE root = '' AND starts_with(path, :folder) AND reason NOT IN ('swept', 'erased')

-- name: remove_from_versions -> none
-- Let no version have the old files.
DELETE FROM adjunct_version_file WHERE store_id = :store_id AND path = ANY(:old)

-- name: remove_files -> none
-- Forget the old files.
DELETE FROM adjunct_file WHERE store_id = :store_id AND path = ANY(:old)

-- name: count_erased -> none
-- Record how many rows a request has erased of a store.
SELECT count_erased(:request_id, :name, NULL, NULL, :rows)
