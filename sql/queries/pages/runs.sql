-- What a run did.

-- name: runs -> many JobRun
-- Return the last try of each task of a run, or of one of them.
-- row: What a task of Weir's did in its last try.
-- null: ended_at, progress, error, report, started_by
-- type: arguments = dict[str, Any]
-- type: report = dict[str, Any]
SELECT DISTINCT ON (task_id, map_index) dag_id, run_id, task_id, map_index, try_number, job, state,
    started_at, updated_at, ended_at, progress, error, arguments, report,
    started_by
FROM weir.job_runs
WHERE dag_id = :dag_id AND run_id = :run_id AND (:task_id = '' OR task_id = :task_id)
  AND (:task_id = '' OR map_index = :map_index)
ORDER BY task_id, map_index, try_number DESC LIMIT :most

-- name: steps -> many Step
-- Return what a run read and wrote.
-- row: One thing that it read or wrote, in one commit.
-- null: segment, from_offset, to_offset, version, reader_group, batch_id, function, function_version
SELECT side, kind, name, name_segment AS segment, name_from AS from_offset, name_to AS to_offset,
    version, committed_at, reader_group, batch_id, function, function_version
FROM weir.lineage(:run, 'up', 0) WHERE side IS NOT NULL LIMIT :most
