-- What the database knows of the warehouse.

-- name: known_paths -> many KnownPath
-- Return the paths of files and of garbage, and the numbers of streams. `written`: garbage has what
-- open appends and builds are writing, too. What was discarded of an append may have been committed
-- since. `stores` and `tx`: what the names of folders of stores and of transactions begin with.
SELECT 'file' AS what, path FROM data_file
UNION ALL SELECT 'file', path FROM adjunct_file
UNION ALL SELECT 'garbage', path FROM annex_file WHERE NOT open OR :written
UNION ALL SELECT 'garbage', path FROM garbage WHERE root = ''
    AND (reason NOT IN ('aborted', 'fenced') OR starts_with(path, :stores) OR :written)
UNION ALL SELECT 'garbage', stream_id || :tx || transaction_number || '/'
    FROM transaction WHERE state = 'open' AND :written
UNION ALL SELECT 'garbage', :stores || store_id || '/version=' || version || '/'
    FROM adjunct_version WHERE state = 'building' AND :written
UNION ALL SELECT 'stream', stream_id::text FROM stream WHERE state <> 'deleted'

-- name: discard_unknown -> none
-- Make garbage of files, but not of those that were committed since somebody looked.
-- null: :stream_id
INSERT INTO garbage (root, path, stream_id, reason, bytes)
SELECT '', f.path, CAST(:stream_id AS bigint), 'unknown', f.bytes
FROM unnest(CAST(:paths AS text[]), CAST(:bytes AS bigint[])) AS f (path, bytes)
WHERE NOT EXISTS (
    SELECT FROM data_file d WHERE d.stream_id = :stream_id AND d.path = f.path)
  AND NOT EXISTS (SELECT FROM adjunct_file a WHERE a.path = f.path)
ON CONFLICT (root, path) DO NOTHING
