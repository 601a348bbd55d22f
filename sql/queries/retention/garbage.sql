-- Sweep garbage.
-- fragments: retention/judged.sql

-- name: sweepable -> many
-- Return garbage that may be deleted by its time, after a path, and whether something needs it.
-- null: stream_id, rows, end_hash
WITH due AS MATERIALIZED (
    SELECT g.root, g.path, g.bytes, g.reason, g.stream_id, g.rows, g.end_hash
    FROM garbage_due(:grace, :again, :compacted) g WHERE (g.root, g.path) > (:root, :path)
    ORDER BY g.root, g.path LIMIT :most
), {judged}
SELECT * FROM judged ORDER BY root, path

-- name: count_sweep -> one
-- Count a sweep, and return how many there were.
UPDATE installation SET sweep_count = sweep_count + 1, swept_at = clock_timestamp() RETURNING sweep_count

-- name: forget -> none
-- Delete the rows of what was deleted, but for folders that are to be deleted once more, if `again`
-- is more than 0. What each row says now does not count: another sweep at the same time may have
-- changed it.
WITH gone AS MATERIALIZED (
    SELECT d.root, d.path,
           CAST(:again AS float8) > 0 AND d.path LIKE '%/' AND d.reason <> 'swept' AS again
    FROM unnest(CAST(:roots AS text[]), CAST(:paths AS text[]),
                CAST(:reasons AS text[])) AS d (root, path, reason)
), kept AS (
    UPDATE garbage g SET reason = 'swept', garbage_since = clock_timestamp(), bytes = 0
    FROM gone d WHERE d.again AND g.root = d.root AND g.path = d.path
)
DELETE FROM garbage g USING gone d
WHERE NOT d.again AND g.root = d.root AND g.path = d.path
