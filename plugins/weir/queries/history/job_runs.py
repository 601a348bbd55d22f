"""What each run of a job does. Made by `make queries` from sql/queries/history/job_runs.sql."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

KILL_EARLIER = text(
    """UPDATE job_run SET state = 'killed', error = 'It ended without a word; another '
    || 'try took over.'
WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
  AND map_index = :map_index AND try_number < :try_number
  AND state IN ('submitted', 'running')"""
)


def kill_earlier(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
) -> None:
    """Record that earlier tries were killed that did not say how they ended."""
    result = connection.execute(
        KILL_EARLIER,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
        },
    )
    result.close()


START = text(
    """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job,
                        item, arguments, state, approved, started_by)
VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job, :item,
        CAST(:arguments AS jsonb), :state, CAST(:approved AS jsonb), :started_by)
ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
    state = excluded.state, item = excluded.item, begun = true,
    started_at = clock_timestamp(), updated_at = clock_timestamp(),
    arguments = excluded.arguments, report = NULL, error = NULL"""
)


def start(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
    job: str,
    item: str,
    arguments: str,
    state: str,
    approved: str | None,
    started_by: str | None,
) -> None:
    """Record that a job runs, or will."""
    result = connection.execute(
        START,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "job": job,
            "item": item,
            "arguments": arguments,
            "state": state,
            "approved": approved,
            "started_by": started_by,
        },
    )
    result.close()


NOT_BEGUN = text(
    """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                        state, begun, error, retryable)
VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job,
        CAST(:arguments AS jsonb), 'failed', false, :error, :retryable)
ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
    state = 'failed', updated_at = clock_timestamp(), error = excluded.error,
    retryable = excluded.retryable
WHERE job_run.state = 'running'"""
)


def not_begun(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
    job: str,
    arguments: str,
    error: str,
    retryable: bool,
) -> None:
    """Record that a task failed without a job, unless it is known how the run ended."""
    result = connection.execute(
        NOT_BEGUN,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "job": job,
            "arguments": arguments,
            "error": error,
            "retryable": retryable,
        },
    )
    result.close()


PROGRESS = text(
    """UPDATE job_run SET updated_at = clock_timestamp(), progress = coalesce(:line, progress)
WHERE ctid = ANY(ARRAY(SELECT ctid FROM job_run
    WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED))"""
)


def progress(
    connection: Connection,
    *,
    line: str | None,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
) -> None:
    """Record a line of progress, and without one a sign of life, of a job that is running. After an outage this may come late from its thread, and must not undo the job's end. A session that has locked the row must not delay the job."""
    result = connection.execute(
        PROGRESS,
        {
            "line": line,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
        },
    )
    result.close()


SHOW = text(
    """UPDATE job_run SET report = jsonb_build_object('spark_pages', CAST(:pages AS text))
WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number AND state = 'running'"""
)


def show(
    connection: Connection,
    *,
    pages: str,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
) -> None:
    """Record where Spark shows what a job runs, which its report keeps, however it ends."""
    result = connection.execute(
        SHOW,
        {
            "pages": pages,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
        },
    )
    result.close()


FINISH = text(
    """UPDATE job_run SET state = :state, updated_at = clock_timestamp(),
    report = coalesce(coalesce(report, '{}') || CAST(:report AS jsonb), report),
    error = :error, retryable = :retryable,
    progress = coalesce(nullif(:sentence, ''), progress)
WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number"""
)


def finish(
    connection: Connection,
    *,
    state: str,
    report: str | None,
    error: str | None,
    retryable: bool | None,
    sentence: str,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
) -> None:
    """Record how a job ended."""
    result = connection.execute(
        FINISH,
        {
            "state": state,
            "report": report,
            "error": error,
            "retryable": retryable,
            "sentence": sentence,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
        },
    )
    result.close()


REPLACE = text(
    """UPDATE job_run SET arguments = CAST(:arguments AS jsonb) WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND item = :item AND (map_index = :map_index OR item <> '')"""
)


def replace(
    connection: Connection,
    *,
    arguments: str,
    dag_id: str,
    run_id: str,
    task_id: str,
    item: str,
    map_index: int,
) -> None:
    """Replace the arguments of all tries of a run."""
    result = connection.execute(
        REPLACE,
        {
            "arguments": arguments,
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "item": item,
            "map_index": map_index,
        },
    )
    result.close()


GIVEN = text(
    """SELECT arguments, approved FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number AND job = :job"""
)


class Given(NamedTuple):
    """A row of `given`."""

    arguments: dict[str, Any]
    approved: dict[str, Any] | None


def given(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
    job: str,
) -> Given | None:
    """Return the arguments of a run of a job, and what a person has approved."""
    result = connection.execute(
        GIVEN,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
            "job": job,
        },
    )
    row = result.one_or_none()
    return None if row is None else Given._make(row)


BEGUN = text(
    """SELECT EXISTS (SELECT FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND item = :item AND (map_index = :map_index OR item <> '') AND begun) AS begun"""
)


def begun(
    connection: Connection, *, dag_id: str, run_id: str, task_id: str, item: str, map_index: int
) -> bool:
    """Return whether any try of a run has begun."""
    result = connection.execute(
        BEGUN,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "item": item,
            "map_index": map_index,
        },
    )
    value: bool = result.scalar_one()
    return value


DONE = text(
    """SELECT arguments FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND item = :item AND (map_index = :map_index OR item <> '')
AND EXISTS (SELECT FROM request WHERE request_id = :request_id)
ORDER BY started_at DESC LIMIT 1"""
)


def done(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    item: str,
    map_index: int,
    request_id: str,
) -> dict[str, Any] | None:
    """Return the arguments of the newest try of a run that has done what it asks for."""
    result = connection.execute(
        DONE,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "item": item,
            "map_index": map_index,
            "request_id": request_id,
        },
    )
    value: dict[str, Any] | None = result.scalar_one_or_none()
    return value


OUTCOME = text(
    """SELECT state, report, coalesce(CASE state WHEN 'succeeded' THEN progress ELSE error END, '') AS sentence,
    retryable IS NOT FALSE AS retryable
FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number"""
)


class Outcome(NamedTuple):
    """How a run ended: what it reports, or a sentence, and whether another try may succeed."""

    state: str
    report: dict[str, Any] | None
    sentence: str
    retryable: bool


def outcome(
    connection: Connection,
    *,
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: int,
    try_number: int,
) -> Outcome | None:
    """Return how a run ended."""
    result = connection.execute(
        OUTCOME,
        {
            "dag_id": dag_id,
            "run_id": run_id,
            "task_id": task_id,
            "map_index": map_index,
            "try_number": try_number,
        },
    )
    row = result.one_or_none()
    return None if row is None else Outcome._make(row)


PRUNE = text(
    """DELETE FROM job_run
WHERE started_at < now() - :age * interval '1 second'
  AND updated_at < now() - :age * interval '1 second'"""
)


def prune(connection: Connection, *, age: float) -> int:
    """Delete the rows of jobs that began, and were last updated, some seconds ago."""
    result = connection.execute(PRUNE, {"age": age})
    return result.rowcount
