-- Sweep garbage.

-- name: count_sweep -> one
-- Count a sweep, and return how many there were.
UPDATE installation SET sweep_count = sweep_count + 1 RETURNING sweep_count

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
