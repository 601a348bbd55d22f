-- Versions of adjunct stores, and their files.
-- import: from weir.model.schema import Field
-- import: from weir.controller.queries import Cut

-- fragment: version
SELECT v.store_id, a.name AS store, a.stream_id, v.version, v.definition, v.cut, v.clock, v.fields,
    v.row_count AS rows, v.bytes, v.layout, v.code, d.value <> '' AS has_source
FROM adjunct_version v JOIN adjunct_store a USING (store_id)
JOIN adjunct_definition d ON d.store_id = v.store_id AND d.definition = v.definition
WHERE v.store_id = :store_id AND v.state = 'published'

-- name: newest -> maybe Version
-- Return the newest published version of a store.
-- null: code
-- type: cut = Cut
-- type: fields = list[Field]
{version} ORDER BY v.version DESC LIMIT 1

-- name: one -> maybe Version
-- Return a published version by its number.
-- null: code
-- type: cut = Cut
-- type: fields = list[Field]
{version} AND v.version = :version

-- name: files -> many AdjunctFile
-- Return the files of the table of a version, each with the range of the hashes of its keys.
SELECT f.path, f.row_count AS rows, f.bytes, f.low, f.high
FROM adjunct_version_file v JOIN adjunct_file f USING (store_id, path)
WHERE v.store_id = :store_id AND v.version = :version ORDER BY f.low, f.path

-- name: older -> many Older
-- Return the older versions of a definition and code.
-- null: :code
-- type: cut = Cut
SELECT version, cut FROM adjunct_version
WHERE store_id = :store_id AND state = 'published' AND version < :version
  AND definition = :definition AND code IS NOT DISTINCT FROM :code ORDER BY version

-- name: history -> many Changes
-- Return a version and the ones before it of a definition and code, whose changes may be kept.
-- null: history_from, :code
SELECT version, clock, state, kind, history_from FROM adjunct_version
WHERE store_id = :store_id AND definition = :definition AND version <= :version
  AND code IS NOT DISTINCT FROM :code AND published_at IS NOT NULL
ORDER BY version DESC

-- name: history_files -> many AdjunctFile
-- Return the files of the changes of versions.
SELECT path, row_count AS rows, bytes, low, high FROM adjunct_file
WHERE store_id = :store_id AND version = ANY(:versions) AND kind = 'history' ORDER BY path

-- name: file -> maybe File
-- Return what is recorded of a file of the versions of stores.
SELECT s.name, f.bytes FROM adjunct_file f JOIN adjunct_store s USING (store_id)
WHERE f.path = :path LIMIT 1
