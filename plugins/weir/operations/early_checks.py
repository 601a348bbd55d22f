"""Find out before a job is submitted that it can't succeed: a job tells only when its JVM has
started. What is found here has the sentence that the job would have had.

Actions that are one transaction are run and undone, so every refusal is found by the code that
refuses. A run that was begun is not checked, because it may be done; what is unclear is the job's.
"""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import fields, replace

from sqlalchemy import Connection, text

from weir.controller.locks import read_stream
from weir.database.connection import Database
from weir.errors import WeirError
from weir.history.job_runs import was_begun
from weir.model.names import stream_name
from weir.operations.action import Action, F, Job, R
from weir.operations.form import Form
from weir.reader_groups.locks import no_such_group

log = logging.getLogger("weir.operations")
_EXISTS: dict[str, Callable[[Connection, str], object]] = {
    "stream": lambda connection, name: read_stream(connection, stream_name(name)),
    "reader_group": lambda connection, name: _check_group(connection, name),
    "adjunct_store": lambda connection, name: _check_store(connection, name),
}


class _Undone(Exception):
    """Ends a rehearsal, so that nothing of it stays."""


def check_early(job: Job, action: Action[F, R], parsed: F, *, here: bool) -> None:
    """Raise what the job would raise, as far as that can be known without Spark. `here`: whether
    the job will see the files and the functions of this machine.

    A run that an earlier try has begun is not checked: it may be done already. What goes wrong
    otherwise is the job's to say.
    """
    if was_begun(job.database, job.run):
        return
    try:
        job.database.transaction(lambda c: _check_names(c, parsed))
        if action.check is not None and here:
            action.check(job, parsed)
        if action.rehearsed:
            _rehearse(job, action, parsed)
    except WeirError as error:
        elsewhere = not here and error.code.startswith("function_")  # the job has other files
        left = elsewhere or error.code in ("spark_not_given", "transaction_shared")
        if not error.retryable and not left:
            raise
    except Exception:
        log.debug("what could be known early is left to the job", exc_info=True)


def _check_names(connection: Connection, parsed: Form) -> None:
    """Check that what the arguments name exists."""
    for one in fields(parsed):
        if exists := _EXISTS.get(one.metadata["names"]):
            value = getattr(parsed, one.name)
            for name in value if isinstance(value, list) else filter(None, [value]):
                exists(connection, name)


def _check_store(connection: Connection, name: str) -> None:
    from weir.adjunct.stores import read_store  # which loads pyarrow

    read_store(connection, name)


def _check_group(connection: Connection, name: str) -> None:
    there = text("SELECT EXISTS (SELECT FROM reader_group WHERE name = :name)")
    if not connection.execute(there, {"name": name}).scalar_one():
        raise no_such_group(name)


def _rehearse(job: Job, action: Action[F, R], parsed: F) -> None:
    """Run an action that is one transaction, and undo it."""

    def trial(database: Database) -> None:
        action.run(replace(job, database=database, log=lambda _: None), parsed)
        raise _Undone

    with contextlib.suppress(_Undone):
        job.database.together(trial)
