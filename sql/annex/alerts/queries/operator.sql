-- What is wrong, and which of them a task has told.

-- name: alerts -> many
-- Return what is wrong now; but what becomes of a task, it does not tell itself.
-- null: stream, reader_group, at
SELECT kind || ' ' || subject AS key, stream, reader_group, kind AS alert, severity, since AS at, sentence AS message, advice
FROM weir.troubles WHERE NOT query @> jsonb_build_object('dag_id', CAST(:dag_id AS text), 'task_id', CAST(:task_id AS text))
ORDER BY since, subject, kind

-- name: told -> maybe
-- Return what a task has told before: its state is the report of its last run, whatever became of that.
SELECT report FROM job_run
WHERE dag_id = :dag_id AND task_id = :task_id AND job = :job AND report IS NOT NULL
ORDER BY started_at DESC LIMIT 1
