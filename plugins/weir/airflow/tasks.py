"""What all tasks of Weir have in common: their identity, their retries, how they fail and what is
recorded of them."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from weir.airflow.connection import settings_of
from weir.airflow.items import Item, check_item
from weir.controller.completeness import state_completeness
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.front_ends import speaking
from weir.history.job_runs import (
    SIGN_OF_LIFE,
    RunId,
    record_alive,
    record_end,
    record_not_begun,
    record_start,
)
from weir.model.names import stream_name
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import failure_of
from weir.settings import hasty

if TYPE_CHECKING:
    from weir.airflow.context import Context, Task, TaskKey

log = logging.getLogger("weir.airflow")
RETRIES: dict[str, object] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
}


def say_last(context: "Context") -> None:
    """Log what became of a task as the last line of its log: its sentence, or why it failed."""
    error, sentence = context.get("exception"), getattr(context.get("task"), "sentence", "")
    if error is not None or sentence:
        log.info("::endgroup::")  # of Airflow's "Post Execute", which its UI shows folded
        log.log(logging.INFO if error is None else logging.ERROR, "%s", error or sentence)


def with_retries(kwargs: dict[str, object]) -> dict[str, object]:
    """Return the arguments of a task with Weir's retries, unless the task or its DAG says
    otherwise, and with its sentence as the last line."""
    default = kwargs.get("default_args")
    chosen = {**(default if isinstance(default, Mapping) else {}), **kwargs}
    if "retries" not in chosen:
        kwargs |= {name: value for name, value in RETRIES.items() if name not in chosen}
    for ending in ("on_success_callback", "on_failure_callback", "on_retry_callback"):
        given = chosen.get(ending) or []  # what is given to a task is what its DAG gives no more
        kwargs[ending] = [*(given if isinstance(given, (list, tuple)) else [given]), say_last]
    return kwargs


def run_of(ti: "TaskKey") -> RunId:
    """Return the run id of a task instance of Airflow. Raises InvalidInput for one in a loop of
    Airflow 3.4, whose passes have all names of a run in common."""
    if getattr(ti, "region_id", None):
        raise InvalidInput(
            "item_not_repeatable",
            f"task {ti.task_id!r} is in a loop, whose passes can't be told from tries of one task, "
            "so only the first pass would count; map the task over a list instead.",
        )
    return _names_of(ti)


def _names_of(ti: "TaskKey") -> RunId:
    map_index = -1 if ti.map_index is None else ti.map_index
    return RunId(ti.dag_id, ti.run_id, ti.task_id, map_index, ti.try_number)


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """Fail the task for an error of Weir in the block; without a retry, if that could not mend
    it."""
    try:
        yield
    except WeirError as error:
        raise failure(str(error), error.retryable) from None


@contextlib.contextmanager
def answering(
    task: "Task", context: "Context", job: str, arguments: Mapping[str, object]
) -> Iterator[None]:
    """Speak as a DAG, and leave a row of the run if the block fails before its job begins. Then
    runs, metrics and alerts know of it."""
    by_form = getattr(task, "arguments", task) is None
    with speaking("form" if by_form else "dag", FORMS, job):
        try:
            yield
        except (AirflowSkipException, AirflowRescheduleException):
            raise
        except (Exception, AirflowTaskTimeout) as error:
            if not getattr(task, "submitted", False):
                with contextlib.suppress(Exception):  # also if the database is what is missing
                    _leave_row(task, context, job, arguments, error)
            raise


def _leave_row(
    task: "Task",
    context: "Context",
    job: str,
    arguments: Mapping[str, object],
    error: BaseException,
) -> None:
    if isinstance(error, (AirflowException, AirflowTaskTimeout)):
        sentence, final = str(error), isinstance(error, AirflowFailException)
    else:
        sentence, retryable = failure_of(error)  # type: ignore[arg-type]  # no other is caught
        final = not retryable
    # Of a job that can't be imported nobody knows what may stay; a task of the user's is no job.
    unknown: tuple[str, ...] | None = () if job in ACTIONS.names else None
    may = ACTIONS[job].kept if job in ACTIONS else unknown
    kept = {name: one for name, one in arguments.items() if may is None or name in may}
    run = _names_of(context["ti"])
    with Database.of(hasty(settings_of(task.conn_id))) as database:
        database.transaction(
            lambda c: record_not_begun(c, run, job, kept, sentence, retryable=not final)
        )


@contextlib.contextmanager
def recorded(
    task: "Task", database: Database, run: RunId, arguments: dict[str, object], item: Item | None
) -> Iterator[dict[str, object]]:
    """Record an append of the block with what it puts into the report that it gets, or with the
    sentence of its error, with which the task fails. `item`: that of a mapped task."""
    report: dict[str, object] = {}
    batch_id = str(arguments["batch_id"])
    if item is not None:
        arguments = arguments | {"item": item.shown}
    database.transaction(lambda c: record_start(c, run, "append", arguments))
    try:
        if item is not None:  # after the start, which another index looks for in its turn
            database.transaction(lambda c: check_item(c, run, item, batch_id))
        with database.keep_alive(lambda c: record_alive(c, run), every=SIGN_OF_LIFE):
            yield report
    except (Exception, KeyboardInterrupt) as error:
        sentence, retryable = failure_of(error)
        state = "killed" if isinstance(error, KeyboardInterrupt) else "failed"
        with contextlib.suppress(WeirError):
            database.transaction(
                lambda c: record_end(c, run, state, error=sentence, retryable=retryable)
            )
        raise failure(sentence, retryable) from (None if isinstance(error, WeirError) else error)
    task.sentence = _said(report)
    database.transaction(
        lambda c: record_end(c, run, "succeeded", report=report, sentence=task.sentence)
    )


def failure(sentence: str, retryable: bool) -> AirflowException:
    """Return what fails a task with a sentence: for good, if a retry could not mend it."""
    return (AirflowException if retryable else AirflowFailException)(sentence)


def batch_of(run: RunId, batch_id: str) -> dict[str, str]:
    """Return the writer and the batch of what a task appends: the task is the writer; the batch is
    what it was given, or its run, whatever the try, and the item of a mapped task, whatever its
    index."""
    batch = batch_id or (f"{run.run_id}/{run.item}" if run.item else run.run_id)
    return {"writer_id": f"{run.dag_id}/{run.task_id}", "batch_id": batch}


def state_until(database: Database, stream: str, run: RunId, until: str) -> None:
    """State that a task, an index by itself, has appended everything before an event time, if one
    is given."""
    if until:
        index = f"/{run.map_index}" if run.map_index >= 0 else ""
        writer = f"{run.dag_id}/{run.task_id}{index}"
        state_completeness(database, stream_name(stream), writer, until)


def _said(report: dict[str, object]) -> str:
    """Return what a task says of what it has appended."""
    if "transaction_number" not in report:
        return f"no rows were given: nothing is appended to stream {report['stream']}"
    what = f"transaction {report['transaction_number']} of stream {report['stream']}"
    if report["repeated"]:
        return (
            f"nothing is appended: an earlier try of this task has committed {what}, with "
            f"{report['events']:,} events"
        )
    return f"appended {report['events']:,} events as {what}"
