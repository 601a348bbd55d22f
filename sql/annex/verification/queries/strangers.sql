-- Files that the database does not know.

-- name: with_strangers -> many
-- Return the streams in whose folders strangers were found before; null: elsewhere.
-- null: stream_id
SELECT DISTINCT stream_id FROM found_damage WHERE kind = ANY(CAST(:kinds AS text[]))

-- name: missing -> many MissingFile
-- Return the files that are known to be missing.
SELECT f.bytes, f.end_hash, f.path FROM found_damage d
JOIN data_file f USING (stream_id, segment_id, start_offset)
WHERE d.kind = 'missing' AND d.path = f.path AND f.end_hash IS NOT NULL

-- name: is_there -> one
-- Return whether a stream is not deleted.
SELECT EXISTS (SELECT FROM stream WHERE stream_id = :stream_id AND state <> 'deleted')
