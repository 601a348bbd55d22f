-- What sweeps keep.
-- fragments: retention/judged.sql

-- name: let_go -> one
-- Let sweeps delete what was kept of a stream (null: of all); forget that what is needed is garbage.
-- null: :stream_id
WITH forgotten AS (
    DELETE FROM found_damage d
    WHERE d.kind = 'garbage' AND (CAST(:stream_id AS bigint) IS NULL OR d.stream_id = :stream_id)
    RETURNING d.path
), due AS MATERIALIZED (
    SELECT g.root, g.path FROM garbage g JOIN forgotten f USING (path) WHERE g.root = ''
), {judged}, dropped AS (
    DELETE FROM garbage g USING judged j WHERE j.live AND g.root = '' AND g.path = j.path
), freed AS (
    UPDATE garbage g SET rows = NULL, end_hash = NULL
    FROM judged j WHERE NOT j.live AND g.root = '' AND g.path = j.path
)
SELECT count(*) AS files FROM forgotten

-- name: forget_garbage -> none
-- Forget the damage of garbage that was deleted.
DELETE FROM found_damage WHERE kind = 'garbage' AND path = ANY(CAST(:paths AS text[]))
