-- What each run of a job does.

-- fragment: its_tries
dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND item = :item AND (map_index = :map_index OR item <> '')

-- fragment: this
dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number

-- name: kill_earlier -> none
-- Record that earlier tries were killed that did not say how they ended.
UPDATE job_run SET state = 'killed', error = 'It ended without a word; another '
    || 'try took over.'
WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
  AND map_index = :map_index AND try_number < :try_number
  AND state IN ('submitted', 'running')

-- name: start -> none
-- Record that a job runs, or will.
-- null: :approved, :started_by
INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job,
                        item, arguments, state, approved, started_by)
VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job, :item,
        CAST(:arguments AS jsonb), :state, CAST(:approved AS jsonb), :started_by)
ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
    state = excluded.state, item = excluded.item, begun = true,
    started_at = clock_timestamp(), updated_at = clock_timestamp(),
    arguments = excluded.arguments, report = NULL, error = NULL

-- name: not_begun -> none
-- Record that a task failed without a job, unless it is known how the run ended.
INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                        state, begun, error, retryable)
VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job,
        CAST(:arguments AS jsonb), 'failed', false, :error, :retryable)
ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
    state = 'failed', updated_at = clock_timestamp(), error = excluded.error,
    retryable = excluded.retryable
WHERE job_run.state = 'running'

-- name: progress -> none
-- Record a line of progress, and without one a sign of life, of a job that is running.
-- After an outage this may come late from its thread, and must not undo the job's end. A session
-- that has locked the row must not delay the job.
-- null: :line
UPDATE job_run SET updated_at = clock_timestamp(), progress = coalesce(:line, progress)
WHERE ctid = ANY(ARRAY(SELECT ctid FROM job_run
    WHERE {this} AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED))

-- name: show -> none
-- Record where Spark shows what a job runs, which its report keeps, however it ends.
UPDATE job_run SET report = jsonb_build_object('spark_pages', CAST(:pages AS text))
WHERE {this} AND state = 'running'

-- name: finish -> none
-- Record how a job ended.
-- null: :report, :error, :retryable
UPDATE job_run SET state = :state, updated_at = clock_timestamp(),
    report = coalesce(coalesce(report, '{}') || CAST(:report AS jsonb), report),
    error = :error, retryable = :retryable,
    progress = coalesce(nullif(:sentence, ''), progress)
WHERE {this}

-- name: replace -> none
-- Replace the arguments of all tries of a run.
UPDATE job_run SET arguments = CAST(:arguments AS jsonb) WHERE {its_tries}

-- name: given -> maybe
-- Return the arguments of a run of a job, and what a person has approved.
-- null: approved
-- type: arguments = dict[str, Any]
-- type: approved = dict[str, Any]
SELECT arguments, approved FROM job_run WHERE {this} AND job = :job

-- name: begun -> one
-- Return whether any try of a run has begun.
SELECT EXISTS (SELECT FROM job_run WHERE {its_tries} AND begun) AS begun

-- name: done -> maybe
-- Return the arguments of the newest try of a run that has done what it asks for.
-- type: arguments = dict[str, Any]
SELECT arguments FROM job_run WHERE {its_tries}
AND EXISTS (SELECT FROM request WHERE request_id = :request_id)
ORDER BY started_at DESC LIMIT 1

-- name: outcome -> maybe
-- Return how a run ended.
-- row: How a run ended: what it reports, or a sentence, and whether another try may succeed.
-- null: report
-- type: report = dict[str, Any]
SELECT state, report, coalesce(CASE state WHEN 'succeeded' THEN progress ELSE error END, '') AS sentence,
    retryable IS NOT FALSE AS retryable
FROM job_run WHERE {this}

-- name: prune -> count
-- Delete the rows of jobs that began, and were last updated, some seconds ago.
DELETE FROM job_run
WHERE started_at < now() - :age * interval '1 second'
  AND updated_at < now() - :age * interval '1 second'
