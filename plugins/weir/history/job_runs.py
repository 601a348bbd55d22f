"""Record what each run of a job does: its arguments, its progress, and its report or its error.

Neither arguments nor reports contain a secret, because a job finds its database by the name of a
service.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.history import job_runs as sql
from weir.queries.history.job_runs import Given, Outcome

BY_HAND = "by hand"  # the dag_id of a job that a person starts
# Seconds between two signs of life of a job. After four without one, the view weir.job_runs says
# that it was killed.
SIGN_OF_LIFE = 30.0


class _Task(TypedDict):
    dag_id: str
    run_id: str
    task_id: str
    map_index: int


class _Try(_Task):
    try_number: int


class _Tries(_Task):
    item: str


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
    def _task(self) -> _Task:
        return {
            "dag_id": self.dag_id, "run_id": self.run_id, "task_id": self.task_id,
            "map_index": self.map_index,
        }  # fmt: skip

    @property
    def this(self) -> _Try:
        """What names this try in a statement."""
        return {**self._task, "try_number": self.try_number}

    @property
    def tries(self) -> _Tries:
        """What names all tries of what the run does in a statement."""
        return {**self._task, "item": self.item}

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
    arguments: dict[str, object],
    state: str = "running",
    approved: dict[str, object] | None = None,
    started_by: str | None = None,
) -> None:
    """Record that a job runs, or (`state`: submitted) will, with these arguments, and that earlier
    tries were killed that did not say how they ended. `approved`: the facts of the loss that a
    person has approved, for a job that is submitted. `started_by`: who started it by hand."""
    if run.try_number > 1:
        sql.kill_earlier(connection, **run.this)
    sql.start(
        connection,
        **run.this,
        job=job,
        item=run.item,
        arguments=json.dumps(arguments),
        state=state,
        approved=None if approved is None else json.dumps(approved),
        started_by=started_by,
    )


def record_not_begun(
    connection: Connection,
    run: RunId,
    job: str,
    arguments: Mapping[str, object],
    error: str,
    retryable: bool,
) -> None:
    """Record that a task failed before its job began, or while it tried to do without a job.
    Changes nothing if it is known how the run ended."""
    sql.not_begun(
        connection, **run.this, job=job, arguments=json.dumps(arguments, default=str), error=error,
        retryable=retryable,
    )  # fmt: skip


def record_progress(connection: Connection, run: RunId, line: str) -> None:
    """Record a line of progress of a job that is running."""
    sql.progress(connection, line=line, **run.this)


def record_alive(connection: Connection, run: RunId) -> None:
    """Record that a job is alive, if it is running: call it every SIGN_OF_LIFE."""
    sql.progress(connection, line=None, **run.this)


def record_pages(connection: Connection, run: RunId, pages: str) -> None:
    """Record where Spark shows what a job runs, in the report that it will have however it ends."""
    sql.show(connection, pages=pages, **run.this)


def record_end(
    connection: Connection,
    run: RunId,
    state: str,
    *,
    report: Mapping[str, object] | None = None,
    sentence: str = "",
    error: str | None = None,
    retryable: bool | None = None,
) -> None:
    """Record that a job succeeded, failed or was killed: its report and what that says as its last
    progress, or the sentence of the error and whether another try may succeed."""
    sql.finish(
        connection,
        **run.this,
        state=state,
        report=None if report is None else json.dumps(report),
        sentence=sentence,
        error=error,
        retryable=retryable,
    )


def replace_arguments(connection: Connection, run: RunId, arguments: dict[str, object]) -> None:
    """Replace the arguments in the rows of a run, of all its tries: those of what is secret."""
    sql.replace(connection, **run.tries, arguments=json.dumps(arguments))


def read_arguments(database: Database, run: RunId, job: str) -> Given | None:
    """Return the arguments that were recorded for a run of a job, and what a person has approved of
    it; None if there is no such run."""
    return database.transaction(lambda c: sql.given(c, **run.this, job=job))


def was_begun(database: Database, run: RunId) -> bool:
    """Return whether the job of any try of a run has begun."""
    return database.transaction(lambda c: sql.begun(c, **run.tries))


def arguments_done(database: Database, run: RunId) -> dict[str, object] | None:
    """Return the arguments with which an earlier try of a run has done what it asks for; None if
    none has."""
    return database.transaction(lambda c: sql.done(c, **run.tries, request_id=run.request_id))


def read_outcome(database: Database, run: RunId) -> Outcome:
    """Return state, report, sentence or error, and whether to retry, of a job that ran; "unknown"
    if it has no row.
    """
    found = database.transaction(lambda c: sql.outcome(c, **run.this))
    return found or Outcome("unknown", None, "", True)


def prune_runs(database: Database, older_than: float) -> int:
    """Delete the rows of jobs that began, and were last updated, more than `older_than` seconds and
    a day ago; return how many. Whoever submitted a job asks for its outcome within that day.
    """
    return commit_once(database, lambda c: sql.prune(c, age=max(older_than, 86400.0)))
