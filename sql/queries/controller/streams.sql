-- The schema of streams.
-- import: from weir.model.schema import Field

-- name: next_version -> none
-- Make `fields` a version of the schema, and the newest one.
WITH made AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    VALUES (:stream_id, :version, CAST(:fields AS jsonb), CAST(:dropped AS text[]))
)
UPDATE stream SET schema_version = :version WHERE stream_id = :stream_id

-- name: dropped -> maybe
-- Return the names in files of the columns that a version of the schema has no more.
SELECT dropped FROM stream_schema WHERE stream_id = :stream_id AND version = :version

-- name: newest_fields -> maybe
-- Return the columns of the newest version.
-- type: fields = list[Field]
SELECT fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version DESC LIMIT 1

-- name: versions -> many
-- Return all versions, oldest first, each with the clock from which on it was the newest.
-- type: fields = list[Field]
SELECT time_clock(created_at) AS since, fields FROM stream_schema
WHERE stream_id = :stream_id ORDER BY version
