-- What writers state without an append.

-- name: state_completeness -> one
-- State what a writer has appended everything before; return what came of it.
SELECT state_completeness(:scope, :name, :writer_id, CAST(:until AS bigint))

-- name: state_unmapped -> one
-- State it for writers of a mapped task that its run does not have; return them.
-- null: state_unmapped
SELECT state_unmapped(:scope, :name, :task, :count, CAST(:until AS bigint))

-- name: complete_until -> one
-- Return what a stream is complete to.
-- null: complete_until
SELECT complete_until FROM stream WHERE stream_id = :stream_id

-- name: take_back -> many TakenBack
-- Make a locked stream complete to an earlier time, or to none; return what was announced.
-- null: since, :until
SELECT t.kind, t.since, t.until, t.airflow
FROM stream s, take_back(s, CAST(:until AS bigint)) t WHERE stream_id = :stream_id
ORDER BY t.airflow, t.kind, t.since, t.until
