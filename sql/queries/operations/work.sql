-- What the jobs with a schedule have to do.

-- name: work -> many
-- Return those of some jobs that may have something to do, by the settings of an installation, and
-- what that is.
SELECT job, what FROM weir_internal.work(CAST(:jobs AS text[]), CAST(:settings AS jsonb)) ORDER BY job, what
