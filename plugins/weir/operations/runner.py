"""Run jobs: arguments in, library calls, a report out. Every file in spark_jobs is a job.

The table job_run says what a job did: its progress while it runs, and then its report, or the
sentence with which it failed. Neither its arguments nor its output ever contain a secret, because
the job finds its database by the name of a service.
"""

import argparse
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.errors import BatchFailed, Incomplete, InvalidInput, WeirError, is_mistake
from weir.model.names import check_text, shortened
from weir.operations import JOBS, parse
from weir.settings import Settings, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THIS = """dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
    AND map_index = :map_index AND try_number = :try_number"""
BY_HAND = "by hand"  # the dag_id of a job that a person starts
PROGRESS_EVERY = 5.0  # seconds between two writes of the progress


@dataclass(frozen=True)
class RunId:
    """Airflow's names for a run of a task. By hand, any unique run id."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1
    try_number: int = 1

    def __str__(self) -> str:
        mapped = f"/{self.map_index}" if self.map_index >= 0 else ""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}{mapped}"

    @classmethod
    def of(cls, name: str) -> "RunId | None":
        """Return the run id of which `str` made this name, without the try; None for any other
        name.
        """
        found = re.fullmatch(r"([^/]+)/([^/]+)/([^/]+?)(?:/(\d+))?", name)
        if found is None:
            return None
        dag_id, run_id, task_id, map_index = found.groups()
        return cls(dag_id, run_id, task_id, -1 if map_index is None else int(map_index))


@dataclass
class Job:
    """What the function of a job gets."""

    name: str
    run: RunId
    settings: Settings
    database: Database
    recorded: bool = False  # whether job_run has a row of it, so that its failure can be recorded
    _spark: "SparkSession | None" = field(default=None)
    _recorded_at: float = field(default=0.0)

    @property
    def request_id(self) -> str:
        """The id of the request, equal in all tries."""
        return str(self.run)

    @property
    def spark(self) -> "SparkSession":
        """The Spark session, made when first used: most metadata jobs need none
        (docs/decisions/0005).
        """
        if self._spark is None:
            from weir.spark.session import session

            self._spark = session(f"weir {self.name}")
        return self._spark

    def say(self, line: str) -> None:
        """Print a line of progress to the task's log, and every few seconds record it in
        job_run.
        """
        print(f"weir: {line}", flush=True)
        if time.monotonic() - self._recorded_at > PROGRESS_EVERY:
            self._recorded_at = time.monotonic()
            self.database.transaction(lambda c: self._progress(c, line))

    def _progress(self, connection: Connection, line: str) -> None:
        # After an outage this may come late from its thread, and must not undo the job's end. A
        # session that has locked the row must not delay the job.
        connection.execute(
            text(
                f"""UPDATE job_run SET updated_at = clock_timestamp(), progress = :line
                WHERE ctid = ANY(ARRAY(SELECT ctid FROM job_run
                    WHERE {_THIS} AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED))"""  # noqa: S608 - constant
            ),
            {"line": line, **self.run.__dict__},
        )

    def _update(self, connection: Connection, state: str, **values: Any) -> None:
        connection.execute(
            text(
                """UPDATE job_run SET state = :state, updated_at = clock_timestamp(),
                    report = CAST(:report AS jsonb), error = :error, retryable = :retryable
                WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
                  AND map_index = :map_index AND try_number = :try_number"""
            ),
            {
                "state": state,
                "report": None, "error": None, "retryable": None,
                **self.run.__dict__, **values,
            },
        )  # fmt: skip

    def _start(
        self, connection: Connection, arguments: dict[str, Any], state: str = "running"
    ) -> None:
        connection.execute(
            text(
                """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job,
                                        arguments, state)
                VALUES (:dag_id, :run_id, :task_id, :map_index, :try_number, :job,
                        CAST(:arguments AS jsonb), :state)
                ON CONFLICT (dag_id, run_id, task_id, map_index, try_number) DO UPDATE SET
                    state = excluded.state, started_at = clock_timestamp(), error = NULL,
                    arguments = excluded.arguments, report = NULL"""
            ),
            {
                **self.run.__dict__, "job": self.name, "arguments": json.dumps(arguments),
                "state": state,
            },
        )  # fmt: skip


def complete(
    report: dict[str, Any],
    tried: Sequence[dict[str, Any]],
    *,
    done: int = 0,
    failed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the report of a job that tried many things, if none of them failed.

    `tried`: what the report says of each; one that failed has an `error`. `done`, `failed`: how
    many others were done, and why others failed. Raises Incomplete with the report.
    """
    errors = [one["error"] for one in tried if "error" in one]
    count, errors = len(tried) + done + len(failed), [*errors, *failed]
    if errors:
        raise Incomplete(
            "some_failed",
            f"{len(errors)} of {count} failed; the first failure is: {errors[0]}",
            report=report,
        )
    return report


def job_path(job: str) -> str:
    """Return the file of a job: in spark_jobs/ of the source tree, or in the installed package."""
    tree = Path(__file__).parents[3] / "spark_jobs" / f"{job}.py"
    return str(tree if tree.is_file() else resources.files("weir.jobs") / f"{job}.py")


def main(
    name: str, work: Callable[[Job, Any], dict[str, Any]], argv: Sequence[str] | None = None
) -> int:
    """Run a job from its command line: `--run JSON --arguments JSON`, or `--arguments` alone.

    Returns the exit status: 0; 1 if another try may succeed; 2 if it would fail in the same way.
    """
    logging.basicConfig(level=logging.INFO, format="weir: %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(prog=f"{name}.py", description=JOBS[name].__doc__)
    parser.add_argument("--run", default="{}", help="dag_id, run_id, task_id ... as JSON")
    parser.add_argument(
        "--arguments", default="",
        help="the job's arguments as JSON; without it, what was handed over to this run",
    )  # fmt: skip
    given = parser.parse_args(argv)
    job: Job | None = None
    try:
        settings = load()
        job = Job(name, _run_id(given.run, name), settings, Database.of(settings))
        if given.arguments:
            arguments = _object(given.arguments, "the arguments")
        else:
            arguments = handed_over(job.database, job.run, name)
            job.recorded = job.run.dag_id != BY_HAND
        report = perform(job, work, arguments)
        print(f"weir: {name}: {json.dumps(report, default=str)[:4000]}", flush=True)
        return 0
    except Exception as error:
        if not isinstance(error, WeirError) or isinstance(error, BatchFailed):
            traceback.print_exc(file=sys.stdout)
        sentence, retryable = failure_of(error)
        print(f"weir: {name} failed: {sentence}", flush=True)
        if job is not None:
            record_failure(job, error)
        return 1 if retryable else 2


def perform(
    job: Job, work: Callable[[Job, Any], dict[str, Any]], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Check the arguments of a job, record that it runs, do its work, and record its report, which
    is returned. Raises what the check and the work raise; the caller then calls `record_failure`.
    """
    parsed = parse(JOBS[job.name], arguments)
    job.database.transaction(lambda c: job._start(c, arguments))
    job.recorded = True
    report = work(job, parsed)
    job.database.transaction(lambda c: job._update(c, "succeeded", report=json.dumps(report)))
    return report


def by_hand(job: str) -> RunId:
    """Return a new run id for a job that a person starts."""
    return RunId(BY_HAND, f"{time.time():.6f}", job)


def failure_of(error: Exception) -> tuple[str, bool]:
    """Return the sentence of a job's failure, and whether another try may succeed."""
    sentence = str(error) if isinstance(error, WeirError) else _sentence(error)
    return sentence, bool(getattr(error, "retryable", not is_mistake(error)))


def _object(written: str, what: str) -> dict[str, Any]:
    """Return a JSON object from the command line. Raises InvalidInput for anything else."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(
            "json_invalid",
            f"{what} {shortened(written)} can't be read as JSON ({reason}); give one JSON object.",
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput(
            "json_invalid",
            f"{what} are {shortened(found)}, which is not a JSON object; give one JSON object.",
        )
    return found


def _run_id(written: str, name: str) -> RunId:
    try:
        run = RunId(**{**by_hand(name).__dict__, **_object(written, "the names of the run")})
    except TypeError:
        known = ", ".join(one.name for one in fields(RunId))
        raise InvalidInput(
            "argument_invalid",
            f"--run is {shortened(written)}; it must be a JSON object with {known}.",
        ) from None
    check_text("--run", str(run))
    return run


def _sentence(error: Exception) -> str:
    """Return the first line of an unexpected error; for one of Java's, that of its cause."""
    if "py4j" in sys.modules and type(error).__module__.startswith(("py4j", "pyspark")):
        from weir.spark.unreadable import first_cause

        return first_cause(error)
    return (f"{type(error).__name__}: {error}".splitlines() or [type(error).__name__])[0]


def hand_over(database: Database, run: RunId, job: str, arguments: dict[str, Any]) -> None:
    """Store the arguments of a job that is about to be submitted, where the job will look for them.

    A command line holds at most 128 KiB, and is in the log.
    """
    starting = Job(job, run, load(), database)
    database.transaction(lambda c: starting._start(c, arguments, "submitted"))


def handed_over(database: Database, run: RunId, job: str) -> dict[str, Any]:
    """Return what `hand_over` stored for a run of a job; an empty dictionary for a job started by
    hand.

    Raises InvalidInput if nothing was stored: without its arguments, a job would do what its
    defaults say.
    """
    if run.dag_id == BY_HAND:
        return {}
    row = database.transaction(
        lambda c: c.execute(
            text(f"SELECT arguments FROM job_run WHERE {_THIS} AND job = :job"),  # noqa: S608 - constant
            {**run.__dict__, "job": job},
        ).one_or_none()
    )
    if row is None:
        raise InvalidInput(
            "arguments_not_handed_over",
            f"the database has no arguments for job {job} of run {run}, try {run.try_number}; "
            "check that this machine's weir.toml names the same database as Airflow's, or pass "
            "them with --arguments.",
        )
    return dict(row.arguments)


def record_failure(job: Job, error: Exception) -> None:
    """Record with which sentence a job failed, if it is known that it ran."""
    if not job.recorded:
        return
    sentence, retryable = failure_of(error)
    done = getattr(error, "report", None)
    try:
        job.database.transaction(
            lambda c: job._update(
                c,
                "failed",
                error=sentence,
                retryable=retryable,
                report=json.dumps(done) if done else None,
            )
        )
    except Exception as lost:
        print(f"weir: the failure could not be recorded: {lost}", flush=True)


def prune_runs(database: Database, older_than: float) -> int:
    """Delete the rows of jobs that began, and were last updated, more than `older_than` seconds and
    a day ago; return how many. Whoever submitted a job asks for its outcome within that day.
    """
    return database.transaction(
        lambda c: (
            c.execute(
                text(
                    """DELETE FROM job_run
                    WHERE started_at < now() - :age * interval '1 second'
                      AND updated_at < now() - :age * interval '1 second'"""
                ),
                {"age": max(older_than, 86400.0)},
            ).rowcount
        )
    )


def read_outcome(database: Database, run: RunId) -> tuple[str, dict[str, Any] | None, str, bool]:
    """Return state, report, error, and whether to retry, of a job that ran; "unknown" if it has no
    row.
    """
    row = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT state, report, error, retryable FROM job_run WHERE dag_id = :dag_id
                AND run_id = :run_id AND task_id = :task_id AND map_index = :map_index
                AND try_number = :try_number"""
            ),
            run.__dict__,
        ).one_or_none()
    )
    if row is None:
        return "unknown", None, "", True
    return row.state, row.report, row.error or "", row.retryable is not False
