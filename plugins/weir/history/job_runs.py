"""Record what each run of a job does: its arguments, its progress, and its report or its error.

Neither arguments nor reports contain a secret, because a job finds its database by the name of a
service.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.database.once import commit_once

# All tries of what a run does.
_ITS_TRIES = """dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND item = :item AND (map_index = :map_index OR item <> '')"""
_THIS = """dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number"""
BY_HAND = "by hand"  # the dag_id of a job that a person starts
# Seconds between two signs of life of a job. After four without one, the view weir.job_runs says
# that it was killed.
SIGN_OF_LIFE = 30.0


@dataclass(frozen=True)
class RunId:
    """Airflow's names for a run of a task. By hand, any unique run id.

    `item`: what a mapped task is known by, whatever its index; empty for another one.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1
    try_number: int = 1
    item: str = ""

    def __str__(self) -> str:
        mapped = f"/{self.map_index}" if self.map_index >= 0 else ""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}{mapped}"

    @property
    def request_id(self) -> str:
        """The id of what the run asks for, equal in all tries."""
        if not self.item:
            return str(self)
        return f"{self.dag_id}/{self.run_id}/{self.task_id}/item {self.item}"

    @classmethod
    def of(cls, name: str) -> "RunId | None":
        """Return the run id of which `str` made this name, without the try; None for any other
        name.
        """
        found = re.fullmatch(r"([^/]+)/([^/]+)/([^/]+?)(?:/([0-9]+))?", name)
        if found is None:
            return None
        dag_id, run_id, task_id, map_index = found.groups()
        return cls(dag_id, run_id, task_id, -1 if map_index is None else int(map_index))


def record_start(
    connection: Connection,
    run: RunId,
    job: str,
    arguments: dict[str, Any],
    state: str = "running",
    approved: dict[str, Any] | None = None,
) -> None:
    """Record that a job runs, or (`state`: submitted) will, with these arguments, and that earlier
    tries were killed that did not say how they ended. `approved`: the facts of the loss that a
    person has approved, for a job that is submitted."""
    if run.try_number > 1:
        connection.execute(
            text(
                """UPDATE job_run SET state = 'killed', error = 'It ended without a word; another '
                    || 'try took over.'
                WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
                  AND map_index = :map_index AND try_number < :try_number
                  AND state IN ('submitted', 'running')"""
            ),
            run.__dict__,
        )
    connection.execute(
        text(
            """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job,
                                    item, arguments, state, approved)
            VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job, :item,
                    CAST(:arguments AS jsonb), :state, CAST(:approved AS jsonb))
            ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
                state = excluded.state, item = excluded.item, begun = true,
                started_at = clock_timestamp(), updated_at = clock_timestamp(),
                arguments = excluded.arguments, report = NULL, error = NULL"""
        ),
        {
            **run.__dict__,
            "job": job,
            "arguments": json.dumps(arguments),
            "state": state,
            "approved": None if approved is None else json.dumps(approved),
        },
    )


def record_not_begun(
    connection: Connection,
    run: RunId,
    job: str,
    arguments: dict[str, Any],
    error: str,
    retryable: bool,
) -> None:
    """Record that a task failed before its job began, or while it tried to do without a job.
    Changes nothing if it is known how the run ended."""
    connection.execute(
        text(
            """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                    state, begun, error, retryable)
            VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job,
                    CAST(:arguments AS jsonb), 'failed', false, :error, :retryable)
            ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
                state = 'failed', updated_at = clock_timestamp(), error = excluded.error,
                retryable = excluded.retryable
            WHERE job_run.state = 'running'"""
        ),
        {
            **run.__dict__, "job": job, "arguments": json.dumps(arguments, default=str),
            "error": error, "retryable": retryable,
        },
    )  # fmt: skip


def record_progress(connection: Connection, run: RunId, line: str) -> None:
    """Record a line of progress of a job that is running."""
    # After an outage this may come late from its thread, and must not undo the job's end. A
    # session that has locked the row must not delay the job.
    connection.execute(
        text(
            f"""UPDATE job_run SET updated_at = clock_timestamp(), progress = :line
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM job_run
                WHERE {_THIS} AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED))"""  # noqa: S608 - constant
        ),
        {"line": line, **run.__dict__},
    )


def record_alive(connection: Connection, run: RunId) -> None:
    """Record that a job is alive, if it is running: call it every SIGN_OF_LIFE."""
    connection.execute(
        text(
            f"""UPDATE job_run SET updated_at = clock_timestamp()
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM job_run
                WHERE {_THIS} AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED))"""  # noqa: S608 - constant
        ),
        run.__dict__,
    )


def record_end(
    connection: Connection,
    run: RunId,
    state: str,
    *,
    report: dict[str, Any] | None = None,
    sentence: str = "",
    error: str | None = None,
    retryable: bool | None = None,
) -> None:
    """Record that a job succeeded, failed or was killed: its report and what that says as its last
    progress, or the sentence of the error and whether another try may succeed."""
    connection.execute(
        text(
            f"""UPDATE job_run SET state = :state, updated_at = clock_timestamp(),
                report = CAST(:report AS jsonb), error = :error, retryable = :retryable,
                progress = coalesce(nullif(:sentence, ''), progress)
            WHERE {_THIS}"""  # noqa: S608 - constant
        ),
        {
            "state": state, "report": None if report is None else json.dumps(report),
            "sentence": sentence, "error": error, "retryable": retryable, **run.__dict__,
        },
    )  # fmt: skip


def replace_arguments(connection: Connection, run: RunId, arguments: dict[str, Any]) -> None:
    """Replace the arguments in the rows of a run, of all its tries: those of what is secret."""
    connection.execute(
        text(
            f"""UPDATE job_run SET arguments = CAST(:arguments AS jsonb)
            WHERE {_ITS_TRIES}"""  # noqa: S608 - constant
        ),
        {**run.__dict__, "arguments": json.dumps(arguments)},
    )


def read_arguments(
    database: Database, run: RunId, job: str
) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
    """Return the arguments that were recorded for a run of a job, and what a person has approved of
    it; None if there is no such run."""
    row = database.transaction(
        lambda c: c.execute(
            text(f"SELECT arguments, approved FROM job_run WHERE {_THIS} AND job = :job"),  # noqa: S608 - constant
            {**run.__dict__, "job": job},
        ).one_or_none()
    )
    return None if row is None else (dict(row.arguments), row.approved)


def was_begun(database: Database, run: RunId) -> bool:
    """Return whether the job of any try of a run has begun."""
    begun: bool = database.transaction(
        lambda c: c.execute(
            text(
                f"SELECT EXISTS (SELECT FROM job_run WHERE {_ITS_TRIES} AND begun)"  # noqa: S608 - constant
            ),
            run.__dict__,
        ).scalar_one()
    )
    return begun


def arguments_done(database: Database, run: RunId) -> dict[str, Any] | None:
    """Return the arguments with which an earlier try of a run has done what it asks for; None if
    none has."""
    row = database.transaction(
        lambda c: c.execute(
            text(
                f"""SELECT arguments FROM job_run WHERE {_ITS_TRIES}
                AND EXISTS (SELECT FROM request WHERE request_id = :request_id)
                ORDER BY started_at DESC LIMIT 1"""  # noqa: S608 - constant
            ),
            {**run.__dict__, "request_id": run.request_id},
        ).one_or_none()
    )
    return None if row is None else dict(row.arguments)


def read_outcome(database: Database, run: RunId) -> tuple[str, dict[str, Any] | None, str, bool]:
    """Return state, report, sentence or error, and whether to retry, of a job that ran; "unknown"
    if it has no row.
    """
    row = database.transaction(
        lambda c: c.execute(
            text(
                f"""SELECT state, report, retryable, CASE state WHEN 'succeeded' THEN progress
                    ELSE error END AS sentence FROM job_run WHERE {_THIS}"""  # noqa: S608 - constant
            ),
            run.__dict__,
        ).one_or_none()
    )
    if row is None:
        return "unknown", None, "", True
    return row.state, row.report, row.sentence or "", row.retryable is not False


def prune_runs(database: Database, older_than: float) -> int:
    """Delete the rows of jobs that began, and were last updated, more than `older_than` seconds and
    a day ago; return how many. Whoever submitted a job asks for its outcome within that day.
    """
    return commit_once(
        database,
        lambda c: (
            c.execute(
                text(
                    """DELETE FROM job_run
                    WHERE started_at < now() - :age * interval '1 second'
                      AND updated_at < now() - :age * interval '1 second'"""
                ),
                {"age": max(older_than, 86400.0)},
            ).rowcount
        ),
    )
