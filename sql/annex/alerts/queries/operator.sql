-- The alerts of retention, and which of them a task has told.

-- name: alerts -> many
-- Return what somebody should look at now.
-- null: reader_group
SELECT stream, reader_group, alert, at, message FROM retention_alerts
ORDER BY at, stream, reader_group, alert

-- name: told -> maybe
-- Return what a task has told before: its state is the report of its last run, whatever became of that.
SELECT report FROM job_run
WHERE dag_id = :dag_id AND task_id = :task_id AND job = :job AND report IS NOT NULL
ORDER BY started_at DESC LIMIT 1
