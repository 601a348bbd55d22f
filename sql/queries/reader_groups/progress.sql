-- How far groups and streams are.

-- name: written -> one
-- Return JSON as Postgres writes it.
SELECT CAST(:aim AS jsonb)::text

-- name: progress_of -> many Progress
-- Return how far things are; what does not exist is left out.
-- null: clock, event_time
SELECT * FROM progress_of(CAST(:group AS text[]), CAST(:stream AS text[]),
CAST(:aim AS jsonb))
