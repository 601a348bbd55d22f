"""Run actions as jobs: arguments in, library calls, a report out.

While a job runs, `weir.history.job_runs` has its progress, and then its report, or the sentence
with which it failed.
"""

import argparse
import getpass
import inspect
import json
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from weir.consumers.reader_names import process_mark
from weir.database.connection import Database
from weir.database.refusals import message, sqlstate
from weir.errors import Conflict, InvalidInput, WeirError, exited, is_mistake
from weir.front_ends import speaking
from weir.history.job_runs import (
    BY_HAND,
    SIGN_OF_LIFE,
    RunId,
    read_arguments,
    record_alive,
    record_end,
    record_start,
)
from weir.installation.extras import missing_extra
from weir.model.names import check_text, shortened
from weir.operations.action import UPKEEP, Action, F, Job, R
from weir.operations.effects import check_effects
from weir.operations.form import parse
from weir.settings import load
from weir.source_tree import beside

# How its JVM starts if the job is over before the optimising compiler pays.
SHORT_JOB = "-XX:TieredStopAtLevel=1"


def main(action: Action[F, R], argv: Sequence[str] | None = None) -> int:
    """Run a job from its command line: `--arguments JSON`, or `--run JSON`, a run whose arguments
    were handed over, or both.

    Returns the exit status: 0; 1 if another try may succeed; 2 if it would fail in the same way.
    """
    logging.basicConfig(level=logging.INFO, format="weir: %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a call that was interrupted
    name = action.name
    # Python looks for modules beside the job first: a package of a user may have a job's name.
    jobs = beside("spark_jobs")
    sys.path[:] = [one for one in sys.path if Path(one or ".").resolve() != jobs]
    parser = argparse.ArgumentParser(
        prog=Path(action.file).name, description=inspect.getdoc(action.form)
    )
    parser.add_argument("--run", default="{}", help="dag_id, run_id, task_id ... as JSON")
    parser.add_argument(
        "--arguments", default="",
        help="the job's arguments as JSON; without it, what was handed over to this run",
    )  # fmt: skip
    parser.add_argument(
        "--front-end", choices=("form", "dag"), default="form", help="in whose words a run speaks"
    )
    given = parser.parse_args(argv)
    from weir.operations.jobs import FORMS  # which finds the jobs, of which this is one

    if argv is None:  # the process is the job's: what kills it politely gets a last word
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    job: Job | None = None
    try:
        settings = load()
        job = Job(name, _run_id(given.run, name), settings, Database.of(settings))
        with speaking("program" if job.run.dag_id == BY_HAND else given.front_end, FORMS, name):
            if given.arguments:
                arguments = _object(given.arguments, "the arguments")
            else:
                arguments, job.approved = handed_over(job.database, job.run, name)
                job.recorded = job.run.dag_id != BY_HAND
            report = perform(job, action, arguments)
        print(f"weir: {name}: {json.dumps(report, default=str)[:4000]}", flush=True)
        job.log(job.sentence)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if job is not None:  # first, because what reads the output may have ended: a dead JVM
            record_failure(job, error)
        if not isinstance(error, (WeirError, KeyboardInterrupt)):
            traceback.print_exc(file=sys.stdout)
        sentence, retryable = failure_of(error)
        print(f"weir: {name} failed: {sentence}", flush=True)
        return 1 if retryable else 2


def run_if_main(action: Action[F, R], module: str) -> None:
    """Run a job from its command line if its module is the program: the last line of its file."""
    if module == "__main__":
        raise SystemExit(main(action))


def perform(job: Job, action: Action[F, R], arguments: dict[str, object]) -> dict[str, object]:
    """Check the arguments of a job, record that it runs, run its action, and record its report,
    which is returned, and its sentence, which the job has then. Raises what the check and the run
    raise; the caller then calls `record_failure`.
    """
    parsed = parse(action.form, arguments)
    check_effects(parsed)
    hand = started_by() if job.run.dag_id == BY_HAND else None
    job.database.transaction(
        lambda c: record_start(c, job.run, job.name, arguments, started_by=hand)
    )
    job.given, job.recorded = arguments, True
    if action.subject == UPKEEP:
        _check_sees_all(job.database)
    try:
        with job.database.keep_alive(lambda c: record_alive(c, job.run), every=SIGN_OF_LIFE):
            report = action.run(job, parsed)
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
    finally:
        job.end_spark()
    job.sentence = action.said(parsed, report)
    more = {"functions": job.functions, "spark_pages": job.pages}
    done = {**report, **{name: value for name, value in more.items() if value}}
    job.database.transaction(
        lambda c: record_end(c, job.run, "succeeded", report=done, sentence=job.sentence)
    )
    return done


def _check_sees_all(database: Database) -> None:
    """Check that nothing is hidden from the login. Raises Conflict: what is about all streams would
    take the files of others for nobody's."""
    login, sees_all = database.transaction(
        lambda c: c.execute(text("SELECT current_user, sees_all(current_user)")).one()
    )
    if not sees_all:
        raise Conflict(
            "not_permitted",
            f"login {login} sees what its teams own, and this is about all streams; let a member "
            "of weir_jobs do it (its schedule does).",
        )


def by_hand(job: str) -> RunId:
    """Return a new run id for a job that a person or a program starts."""
    return RunId(BY_HAND, f"{time.time():.6f}-{process_mark()}", job)


def started_by() -> str:
    """Return who runs this process: the user, the host and the command, without what it is given,
    which may be secret, or a key that is to be erased."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container has no name for its number
        user = f"user {os.getuid()}"
    path, given = Path(sys.argv[0]), sys.argv[1:2]
    terminal = path.name == "weir" or path.parts[-3:] == ("weir", "terminal", "__main__.py")
    command = " ".join(["weir", *given]) if terminal else path.name or "python"
    return f"{user} on {socket.gethostname()}: {command}"[:500]


def failure_of(error: Exception | KeyboardInterrupt) -> tuple[str, bool]:
    """Return the sentence of a job's failure, and whether another try may succeed."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted; what it had committed stays, and another try continues.", True
    sentence = str(error) if isinstance(error, WeirError) else _sentence(error)
    return sentence, bool(getattr(error, "retryable", not is_mistake(error)))


def _object(written: str, what: str) -> dict[str, object]:
    """Return a JSON object from the command line. Raises InvalidInput for anything else."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(
            "argument_invalid",
            f"{what} {shortened(written)} can't be read as JSON ({reason}); give one JSON object.",
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput(
            "argument_invalid",
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
    if "py4j" in sys.modules or "PYSPARK_GATEWAY_PORT" in os.environ:  # set by spark-submit
        from weir.spark.failures.unreadable import first_cause, jvm_has_ended

        of_java = type(error).__module__.startswith(("py4j", "pyspark"))
        if of_java or jvm_has_ended(error):
            return first_cause(error)
    return (f"{type(error).__name__}: {error}".splitlines() or [type(error).__name__])[0]


def hand_over(
    database: Database,
    run: RunId,
    job: str,
    arguments: dict[str, object],
    approved: dict[str, object] | None = None,
) -> None:
    """Store the arguments of a job that is about to be submitted, and the facts of the loss that a
    person has approved, where the job will look for them.

    A command line holds at most 128 KiB, and is in the log.
    """
    database.transaction(lambda c: record_start(c, run, job, arguments, "submitted", approved))


def handed_over(
    database: Database, run: RunId, job: str
) -> tuple[dict[str, object], dict[str, object] | None]:
    """Return what `hand_over` stored for a run of a job; no arguments for a job started by hand.

    Raises InvalidInput if nothing was stored: without its arguments, a job would do what its
    defaults say.
    """
    if run.dag_id == BY_HAND:
        return {}, None
    found = read_arguments(database, run, job)
    if found is None:
        raise InvalidInput(
            "argument_missing",
            f"the database has no arguments for job {job} of run {run}, try {run.try_number}; "
            "check that this machine's weir.toml names the same database as Airflow's, or pass "
            "them with --arguments.",
        )
    return found


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
