"""The operator that runs every Weir job: it submits a PySpark job to the connection
`spark_default`.

To run the same DAG on local[*], a standalone cluster, YARN or Kubernetes, change that connection.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)
from airflow.sdk import BaseHook

from weir.actions import ACTIONS, FORMS
from weir.actions.process import changed_settings
from weir.airflow.forms import RETRIES
from weir.airflow.readers import ReaderTask
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.front_ends import speaking
from weir.history.job_runs import RunId, read_outcome, record_end
from weir.model.names import stream_name
from weir.operations.form import parse
from weir.operations.runner import JOB_FILE, SHORT_JOB, hand_over
from weir.reader_groups.groups.consumers import declared_consumer
from weir.reader_groups.groups.lag import read_lag
from weir.settings import load

log = logging.getLogger("weir.airflow")
SHORT_EVENTS = 1_000_000  # unread events up to which reading them is short


def say_last(context: Any) -> None:
    """Log why a task failed as the last line of its log, after Airflow's traceback."""
    if (error := context.get("exception")) is not None:
        log.info("::endgroup::")  # of Airflow's "Post Execute", which its UI shows folded
        log.error("%s", error)


@contextlib.contextmanager
def _database() -> Iterator[Database]:
    """Yield connections for the block. An error of Weir fails the task; without a retry, if that
    could not mend it."""
    try:
        with Database.of(load()) as database:
            yield database
    except WeirError as error:
        kind = AirflowException if error.retryable else AirflowFailException
        raise kind(str(error)) from None


def is_short(job: str, parsed: Any) -> bool:
    """Return whether a job with these arguments is over before Java's optimising compiler pays: it
    changes metadata, or reads few events."""
    if job != "process":
        return not ACTIONS[job].moves_data
    with _database() as database:
        lag = read_lag(database, [parsed.reader_group])
    unread: int = sum(one["unread_events"] for one in lag)
    return unread <= SHORT_EVENTS


class WeirJobOperator(SparkSubmitOperator):
    """Run a Weir job and return its report.

    :param job: a name in `weir.actions.ACTIONS`, such as "ingest".
    :param arguments: what the job takes (templated). Default: the params of the DAG run, that is,
        the filled-in form.

    An error that a retry cannot mend, such as a wrong argument, fails the task without a retry.
    Other errors are retried, three times unless the task or its DAG says otherwise. A retry repeats
    nothing that was done, and continues what was interrupted. A task that reads a reader group is
    one of its readers: if the task fails or is killed, other readers take over at once.

    Each try submits a job of its own in every deploy mode, so `durable` of the provider's operator
    is false. Raises InvalidInput if it is given as true.
    """

    env_vars: dict[str, Any] | None
    template_fields = (*SparkSubmitOperator.template_fields, "arguments")

    def __init__(self, *, job: str, arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if kwargs.pop("durable", False):
            raise InvalidInput(
                "durable_refused",
                "durable=True is given, but each try of a Weir job submits its own; leave it out.",
            )
        kwargs.setdefault("name", f"weir {job}")
        chosen = {**(kwargs.get("default_args") or {}), **kwargs}
        if "retries" not in chosen:
            kwargs.update({name: value for name, value in RETRIES.items() if name not in chosen})
        if ACTIONS[job].moves_data:
            from weir.airflow.assets import APPENDED

            outlets = kwargs.get("outlets") or []
            outlets = [*outlets] if isinstance(outlets, (list, tuple)) else [outlets]
            kwargs["outlets"] = [*outlets, *([] if APPENDED in outlets else [APPENDED])]
        for ending in ("on_failure_callback", "on_retry_callback"):
            given = kwargs.get(ending) or []
            kwargs[ending] = [*(given if isinstance(given, (list, tuple)) else [given]), say_last]
        # Not the job of an earlier try: what was committed is recorded by run and try, a second
        # driver is harmless, and to find the first one again fails on YARN and standalone clusters.
        super().__init__(application=JOB_FILE, durable=False, **kwargs)
        self.job = job
        self.arguments = arguments
        self._reader: ReaderTask | None = None
        self._run: RunId | None = None

    def execute(self, context: Any) -> dict[str, Any] | None:
        """Check the arguments, submit the job, and return the report that it stored in Postgres."""
        with speaking("form", FORMS, self.job):
            return self._submit(context)

    def _submit(self, context: Any) -> dict[str, Any] | None:
        ti = context["ti"]
        arguments = dict(context["params"]) if self.arguments is None else self.arguments
        try:
            parsed = parse(FORMS[self.job], arguments)
        except InvalidInput as error:
            raise AirflowFailException(str(error)) from None
        if self.arguments is None and self.job == "process":
            arguments = {"reader_group": parsed.reader_group, **changed_settings(parsed)}
        deploy_mode = self._check_connection()
        if deploy_mode != "cluster" and is_short(self.job, parsed):  # there an option is refused
            # First, so that what somebody else says of it wins.
            options = f"{SHORT_JOB} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
            self.env_vars = {"SPARK_SUBMIT_OPTS": options, **(self.env_vars or {})}
        map_index = -1 if ti.map_index is None else ti.map_index
        run = RunId(ti.dag_id, ti.run_id, ti.task_id, map_index, ti.try_number)
        self._run = run
        self.application_args = [self.job, "--run", json.dumps(run.__dict__)]
        self._hand_over(run, arguments)
        failed: Exception | None = None
        with contextlib.ExitStack() as meanwhile:
            if self.job == "process":
                self._reader = ReaderTask(parsed.reader_group, run)
                meanwhile.enter_context(self._reader.watching(ti.get_task_states))
            try:
                super().execute(context)
            except Exception as error:  # of a driver in a cluster the provider raises others, too
                failed = error
                self._end_lease()
        report = self._outcome(run, failed)
        self._tell_assets(context, parsed, report)
        return report

    def _hand_over(self, run: RunId, arguments: dict[str, Any]) -> None:
        with _database() as database:
            hand_over(database, run, self.job, arguments)

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """Return what the task read and wrote. The provider of OpenLineage calls this, if it is
        installed and enabled."""
        from weir.airflow.open_lineage import as_open_lineage, things_of

        run = self._run
        if run is None:
            return None
        with _database() as database:
            return as_open_lineage(database.snapshot(lambda c: things_of(c, run)))

    def on_kill(self) -> None:
        """Stop the job and end the lease of its reader, because Airflow stops the task."""
        super().on_kill()
        self._end_lease()

    def _end_lease(self) -> None:
        if self._reader is not None:
            with contextlib.suppress(Exception):  # the lease also expires by itself
                self._reader.ended()

    def _outcome(self, run: RunId, failed: Exception | None) -> dict[str, Any] | None:
        with _database() as database:
            state, report, sentence, retryable = read_outcome(database, run)
            if failed is None and state == "succeeded":
                return report
            if failed is not None and not sentence:
                sentence = (
                    f"the process of job {self.job} ended without a word ({failed}): it was "
                    "killed, or its memory was used up; the log above has its last lines."
                )
                if state == "submitted":  # one that runs shows no sign of life from now on
                    database.transaction(lambda c: record_end(c, run, "killed", error=sentence))
        if sentence and not retryable:
            raise AirflowFailException(sentence)
        raise AirflowException(sentence or f"the job is {state}")

    def _check_connection(self) -> str:
        """Return the deploy mode, empty for the default. For a connection that does not exist,
        SparkSubmitHook silently uses YARN."""
        try:
            connection = BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self._conn_id!r}; create it in Admin > Connections, of "
                "type Spark, with the master as its host."
            ) from None
        return str(self._deploy_mode or connection.extra_dejson.get("deploy-mode") or "")

    def _tell_assets(self, context: Any, parsed: Any, report: dict[str, Any] | None) -> None:
        """Announce the streams to which the job has appended through the outlet alias, as a hint
        for schedules, with its transactions and how many events they have."""
        from weir.airflow.assets import APPENDED, stream_asset

        if APPENDED not in (self.outlets or []):
            return
        appended: dict[str, list[dict[str, Any]]] = {}
        if hasattr(parsed, "stream"):
            appended[str(stream_name(parsed.stream))] = [report] if report else []
        else:
            for batch in (report or {}).get("batches", []):
                for one in batch["streams"]:
                    appended.setdefault(one["stream"], []).append(one)
            if context["ti"].try_number > 1:  # a try that failed may have committed batches
                for output in parsed.outputs or self._declared_outputs(parsed.reader_group):
                    kind, _, name = output.split()[0].partition(":")
                    if kind == "stream":
                        appended.setdefault(name, [])
        for stream, commits in sorted(appended.items()):
            numbers = [one["transaction_number"] for one in commits]
            extra = {"transactions": numbers, "events": sum(one["events"] for one in commits)}
            context["outlet_events"][APPENDED].add(stream_asset(stream), extra=extra)

    def _declared_outputs(self, reader_group: str) -> list[str]:
        with _database() as database:
            declared = database.transaction(lambda c: declared_consumer(c, reader_group))
        return list(declared.get("outputs", []))
