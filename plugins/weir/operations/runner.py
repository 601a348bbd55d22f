"""Run jobs: arguments in, library calls, a report out. Every file in spark_jobs is a job.

While a job runs, `weir.history.job_runs` has its progress, and then its report, or the sentence
with which it failed.
"""

import argparse
import functools
import json
import logging
import runpy
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError

from weir.database.connection import Database
from weir.database.refusals import message, sqlstate
from weir.errors import Incomplete, InvalidInput, WeirError, exited, is_mistake
from weir.front_ends import speaking
from weir.history.job_runs import (
    BY_HAND,
    SIGN_OF_LIFE,
    RunId,
    read_arguments,
    record_alive,
    record_end,
    record_progress,
    record_start,
)
from weir.installation.extras import missing_extra
from weir.installation.opened import Installation
from weir.model.names import check_text, shortened
from weir.operations import JOBS, parse
from weir.settings import Settings, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRESS_EVERY = 5.0  # seconds between two writes of the progress


def _print(line: str) -> None:
    print(f"weir: {line}", flush=True)


@dataclass
class Job:
    """What the function of a job gets."""

    name: str
    run: RunId
    settings: Settings
    database: Database
    given: dict[str, Any] = field(default_factory=dict)  # the arguments that are given, by name
    recorded: bool = False  # whether job_run has a row of it, so that its failure can be recorded
    functions: list[dict[str, str]] = field(default_factory=list)  # that it calls, for its report
    log: Callable[[str], None] = _print
    start_spark: "Callable[[], SparkSession] | None" = None
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
        if self._spark is None and self.start_spark is not None:
            self._spark = self.start_spark()
        if self._spark is None:
            from weir.spark.base.session import session

            self._spark = session(f"weir {self.name}")
        return self._spark

    @property
    def installation(self) -> Installation:
        """What the library needs of the job."""
        return Installation(
            self.settings, self.database, str(self.run), self.say, lambda: self.spark
        )

    def function(self, name: str) -> Callable[..., Any]:
        """Load a function of a user as the settings allow it, and say and record its file and its
        version. Raises InvalidInput as `load_function` does."""
        from weir.consumers.function_source import source_file, source_of
        from weir.consumers.user_functions import load_function

        settings = self.settings
        function = load_function(name, settings.function_packages, settings.function_path)
        file, version = source_file(function), source_of(function).version
        self.functions.append({"name": name, "file": file, "version": version})
        self.say(f"function {name} of {file or 'no file'}, version {version or 'unknown'}")
        return function

    def say(self, line: str) -> None:
        """Print a line of progress to the task's log, or to the program that runs the job, and
        every few seconds record it in job_run.
        """
        self.log(line)
        if time.monotonic() - self._recorded_at > PROGRESS_EVERY:
            self._recorded_at = time.monotonic()
            self.database.transaction(lambda c: record_progress(c, self.run, line))

    def say_all(self, lines: Sequence[str]) -> None:
        """Print lines as `say` does."""
        for line in lines:
            self.say(line)


def complete(
    report: dict[str, Any],
    tried: Sequence[dict[str, Any]],
    *,
    done: int = 0,
    failed: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the report of a job that tried many things, if none of them failed.

    `tried`: what the report says of each; one that failed has an `error`. `done`, `failed`: how
    many others were done, and why others failed. Raises Incomplete with the report; it is final if
    all that failed are (`retryable` is false).
    """
    final = [one for one in tried if one.get("retryable") is False]
    errors = [one["error"] for one in tried if "error" in one]
    count, errors = len(tried) + done + len(failed), [*errors, *failed]
    if errors:
        raise Incomplete(
            "some_failed",
            f"{len(errors)} of {count} failed; the first failure is: {errors[0]}",
            report=report,
            retryable=len(final) < len(errors),
        )
    return report


def job_path(job: str) -> str:
    """Return the file of a job: in spark_jobs/ of the source tree, or in the installed package."""
    tree = Path(__file__).parents[3] / "spark_jobs" / f"{job}.py"
    return str(tree if tree.is_file() else resources.files("weir.jobs") / f"{job}.py")


@functools.cache
def work_of(job: str) -> Callable[[Job, Any], dict[str, Any]]:
    """Return the function of a job's file, to run it in this process."""
    work: Callable[[Job, Any], dict[str, Any]] = runpy.run_path(job_path(job))["run"]
    return work


def main(
    name: str, work: Callable[[Job, Any], dict[str, Any]], argv: Sequence[str] | None = None
) -> int:
    """Run a job from its command line: `--run JSON --arguments JSON`, or `--arguments` alone.

    Returns the exit status: 0; 1 if another try may succeed; 2 if it would fail in the same way.
    """
    logging.basicConfig(level=logging.INFO, format="weir: %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a call that was interrupted
    parser = argparse.ArgumentParser(prog=f"{name}.py", description=JOBS[name].__doc__)
    parser.add_argument("--run", default="{}", help="dag_id, run_id, task_id ... as JSON")
    parser.add_argument(
        "--arguments", default="",
        help="the job's arguments as JSON; without it, what was handed over to this run",
    )  # fmt: skip
    given = parser.parse_args(argv)
    if argv is None:  # the process is the job's: what kills it politely gets a last word
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    job: Job | None = None
    try:
        settings = load()
        job = Job(name, _run_id(given.run, name), settings, Database.of(settings))
        with speaking("program" if job.run.dag_id == BY_HAND else "form", JOBS, name):
            if given.arguments:
                arguments = _object(given.arguments, "the arguments")
            else:
                arguments = handed_over(job.database, job.run, name)
                job.recorded = job.run.dag_id != BY_HAND
            report = perform(job, work, arguments)
        print(f"weir: {name}: {json.dumps(report, default=str)[:4000]}", flush=True)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if job is not None:  # first, because what reads the output may have ended: a dead JVM
            record_failure(job, error)
        if not isinstance(error, (WeirError, KeyboardInterrupt)):
            traceback.print_exc(file=sys.stdout)
        sentence, retryable = failure_of(error)
        print(f"weir: {name} failed: {sentence}", flush=True)
        return 1 if retryable else 2


def perform(
    job: Job, work: Callable[[Job, Any], dict[str, Any]], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Check the arguments of a job, record that it runs, do its work, and record its report, which
    is returned. Raises what the check and the work raise; the caller then calls `record_failure`.
    """
    parsed = parse(JOBS[job.name], arguments)
    job.database.transaction(lambda c: record_start(c, job.run, job.name, arguments))
    job.given, job.recorded = arguments, True
    try:
        with job.database.keep_alive(lambda c: record_alive(c, job.run), every=SIGN_OF_LIFE):
            report = work(job, parsed)
    except SystemExit as error:  # of code that the job has loaded; nobody would see why it ended
        raise exited(f"job {job.name}", error) from error
    except Exception as error:
        if missing := missing_extra(error):
            raise missing from None
        if "py4j" in sys.modules:
            from weir.spark.failures.lost_files import of_warehouse

            if lost := of_warehouse(job.database, job.settings, error):
                raise lost from error
        raise
    if job.functions:
        report["functions"] = job.functions
    job.database.transaction(lambda c: record_end(c, job.run, "succeeded", report=report))
    return report


def by_hand(job: str) -> RunId:
    """Return a new run id for a job that a person or a program starts."""
    return RunId(BY_HAND, f"{time.time():.6f}-{uuid.uuid4().hex[:6]}", job)


def failure_of(error: Exception | KeyboardInterrupt) -> tuple[str, bool]:
    """Return the sentence of a job's failure, and whether another try may succeed."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted; what it had committed stays, and another try continues.", True
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
    """Return the first line of an unexpected error; for one of Java's, that of its cause; for one
    of Postgres's, its message and SQLSTATE."""
    if isinstance(error, DBAPIError):
        state = sqlstate(error) or "no SQLSTATE"
        return f"Postgres refused a statement ({message(error)}, {state})"
    if "py4j" in sys.modules:
        from weir.spark.failures.unreadable import first_cause, jvm_has_ended

        of_java = type(error).__module__.startswith(("py4j", "pyspark"))
        if of_java or jvm_has_ended(error):
            return first_cause(error)
    return (f"{type(error).__name__}: {error}".splitlines() or [type(error).__name__])[0]


def hand_over(database: Database, run: RunId, job: str, arguments: dict[str, Any]) -> None:
    """Store the arguments of a job that is about to be submitted, where the job will look for them.

    A command line holds at most 128 KiB, and is in the log.
    """
    database.transaction(lambda c: record_start(c, run, job, arguments, "submitted"))


def handed_over(database: Database, run: RunId, job: str) -> dict[str, Any]:
    """Return what `hand_over` stored for a run of a job; an empty dictionary for a job started by
    hand.

    Raises InvalidInput if nothing was stored: without its arguments, a job would do what its
    defaults say.
    """
    if run.dag_id == BY_HAND:
        return {}
    arguments = read_arguments(database, run, job)
    if arguments is None:
        raise InvalidInput(
            "arguments_not_handed_over",
            f"the database has no arguments for job {job} of run {run}, try {run.try_number}; "
            "check that this machine's weir.toml names the same database as Airflow's, or pass "
            "them with --arguments.",
        )
    return arguments


def record_failure(job: Job, error: Exception | KeyboardInterrupt) -> None:
    """Record with which sentence a job failed or was killed, if it is known that it ran."""
    if not job.recorded:
        return
    sentence, retryable = failure_of(error)
    done = dict(getattr(error, "report", None) or {})
    if job.functions:
        done["functions"] = job.functions
    state = "killed" if isinstance(error, KeyboardInterrupt) else "failed"
    try:
        job.database.transaction(
            lambda c: record_end(
                c, job.run, state, report=done or None, error=sentence, retryable=retryable
            )
        )
    except Exception as lost:
        print(f"weir: the failure could not be recorded: {lost}", flush=True)
