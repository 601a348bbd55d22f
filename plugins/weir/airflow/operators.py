"""The operator that runs an action of Weir: in the worker, with a session of the Spark that the
settings name; or as a PySpark job that it submits to a connection; or without Spark.

To submit the same DAG to local[*], a standalone cluster, YARN or Kubernetes, change the connection.
`weir.airflow.actions` makes an operator of each action from this one.
"""

import contextlib
import json
import logging
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
)

from weir.airflow.approvals import answer_of, ask, is_excused
from weir.airflow.assets import with_stream, without_streams
from weir.airflow.connection import settings_of
from weir.airflow.items import item_of, with_item
from weir.airflow.links import LINKS, LinkedJob
from weir.airflow.readers import ReaderTask
from weir.airflow.submission import environment, is_short, no_spark, spark_connection
from weir.airflow.tasks import answering, failing, failure, run_of, with_retries
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError, check_choice
from weir.history.job_runs import RunId, arguments_done, read_outcome, record_end
from weir.operations.action import Job
from weir.operations.consumers import changed_settings
from weir.operations.early_checks import check_early
from weir.operations.form import ENGINES, parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import (
    SHORT_JOB,
    failure_of,
    hand_over,
    perform,
    record_failure,
)
from weir.settings import Settings, as_environment

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from weir.airflow.approvals import Answer
    from weir.airflow.context import Context

log = logging.getLogger("weir.airflow")


class WeirJobOperator(SparkSubmitOperator):
    """Run an action of Weir and return its report.

    :param job: the name of a file in `spark_jobs`, such as "ingest".
    :param arguments: what the job takes (templated). Default: the params of the DAG run, that is,
        the filled-in form.
    :param engine: "spark" runs a PySpark job: in the worker, with a session of the Spark that the
        setting `spark` names, or else submitted; "submit" submits it in any case; "pyarrow" runs
        the action in the worker, without Spark; "auto" does that if the action needs none.
    :param conn_id: a connection of type Weir, which names the installation. Default: that of
        WEIR_CONFIG or `weir.toml`.
    :param spark_conn_id: the connection of Spark to which jobs are submitted, whatever the setting
        `spark` says. Default: spark_default, without such a setting.
    :param approval: whether a person must approve what the action would lose, before it does it.
    :param approval_timeout: how long to wait for that; then the task fails. Default: for ever.

    An error that a retry cannot mend, such as a wrong argument, fails the task without a retry.
    Other errors are retried, three times unless the task or its DAG says otherwise. A retry repeats
    nothing that was done, and continues what was interrupted; nor does a task that is cleared. A
    task that reads a reader group is one of its readers: if the task fails or is killed, other
    readers take over at once.

    Each try submits a job of its own in every deploy mode, so `durable` of the provider's operator
    is false. Raises InvalidInput if it is given as true.
    """

    env_vars: dict[str, object] | None
    template_fields = (*SparkSubmitOperator.template_fields, "arguments")
    operator_extra_links = LINKS
    recorded_as = ""  # the job of its runs, if that is not the action
    submitted = False

    def __init__(
        self,
        *,
        job: str,
        arguments: dict[str, Any] | None = None,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "",
        approval: bool = True,
        approval_timeout: timedelta | None = None,
        **kwargs: object,
    ) -> None:
        if kwargs.pop("durable", False):
            raise InvalidInput(
                "arguments_conflict",
                "durable=True is given, but each try of a Weir job submits its own; leave it out.",
            )
        check_choice("engine", engine, (*ENGINES, "submit"))
        kwargs.setdefault("name", f"weir {job}")
        kwargs.setdefault("doc_md", ACTIONS[job].code)
        if ACTIONS[job].moves_data:
            kwargs["outlets"] = with_stream(kwargs.get("outlets"), arguments)
        # Not the job of an earlier try: what was committed is recorded by run and try, a second
        # driver is harmless, and to find the first one again fails on YARN and standalone clusters.
        super().__init__(
            application=ACTIONS[job].file,
            durable=False,
            conn_id=spark_conn_id or "spark_default",
            **with_retries(kwargs),
        )
        self.job = job
        self.arguments = arguments
        self.engine = "spark" if engine == "submit" else engine
        self.submits = engine == "submit" or bool(spark_conn_id)
        self.conn_id = conn_id
        self.approval = approval
        self.approval_timeout = approval_timeout
        self._reader: ReaderTask | None = None
        self._run: RunId | None = None
        self._here = False  # whether its action runs in this process
        self.shown_arguments: dict[str, object] = {}
        self.yarn_address = ""
        self.sentence = ""  # of the run, for the last line of the log
        self._own: dict[str, Callable[..., object]] = {}  # functions of the DAG file, by name

    def execute(self, context: "Context") -> dict[str, object] | None:
        """Check the arguments, run the action, and return its report."""
        self.submitted = False
        given = dict(context["params"]) if self.arguments is None else self.arguments
        with answering(self, context, self.recorded_as or self.job, given):
            return self._execute(context)

    def _execute(self, context: "Context") -> dict[str, object] | None:
        arguments = dict(context["params"]) if self.arguments is None else self.arguments
        with failing():
            parsed = parse(FORMS[self.job], arguments)
            settings = self._settings()
        if self.arguments is None and self.job == "process":
            arguments = {"reader_group": parsed.reader_group, **changed_settings(parsed)}
        with failing():
            run = self._run = with_item(run_of(context["ti"]), item_of(self, context))
        self.shown_arguments = arguments  # for the links
        if self.approval and ACTIONS[self.job].measure:
            arguments = self._ask_about_loss(context, run, settings, parsed, arguments)
        report = self._run_somewhere(context, run, settings, arguments)
        self.outlets: list[object] = without_streams(self.outlets)
        return report

    def _ask_about_loss(
        self,
        context: "Context",
        run: RunId,
        settings: Settings,
        parsed: object,
        arguments: dict[str, object],
    ) -> dict[str, object]:
        """Measure what would be lost. If that is something, ask, and continue with `approved`.
        Return the arguments; if an earlier try has done it, those with the places that were
        approved, with which it is found to be done."""
        measure = ACTIONS[self.job].measure
        assert measure is not None
        with failing(), Database.of(settings) as database, self._session_here(settings):
            if (done := arguments_done(database, run)) is not None:
                return done
            if is_excused(database):
                return arguments
            job = Job(
                self.job, run, settings, database, arguments,
                start_spark=self._start_spark(settings),
            )  # fmt: skip
            try:
                loss = measure(job, parsed)
            finally:
                job.end_spark()
        if loss is not None:
            for line in loss.lines:
                log.info("%s", line)
            ask(context, self.job, arguments, loss, self.approval_timeout)
        return arguments

    def approved(
        self,
        context: "Context",
        event: "Answer",
        arguments: dict[str, object],
        facts: dict[str, object],
    ) -> dict[str, object] | None:
        """Do what a person has approved, unless something else would be lost by now: in a job, like
        everything that the task does. Airflow calls this when the question is answered."""
        who = answer_of(event)
        log.info("%s approved it", who)
        with answering(self, context, self.job, arguments):
            with failing():
                settings = self._settings()
                run = self._run = with_item(run_of(context["ti"]), item_of(self, context))
            self.shown_arguments = arguments
            report = self._run_somewhere(context, run, settings, arguments, facts)
            return None if report is None else report | {"approved_by": who}

    def _run_somewhere(
        self,
        context: "Context",
        run: RunId,
        settings: Settings,
        arguments: dict[str, object],
        approved: dict[str, object] | None = None,
    ) -> dict[str, object] | None:
        with failing():
            parsed = parse(FORMS[self.job], arguments)
        with contextlib.ExitStack() as meanwhile:
            if self.job == "process":
                self._reader = ReaderTask(parsed.reader_group, run, settings)
                meanwhile.enter_context(self._reader.watching(context["ti"].get_task_states))
            if self._own and self.engine == "spark":  # which a driver elsewhere does not have
                with self._session_here(settings):
                    return self._run_here(run, settings, arguments)
            if (
                self.engine == "pyarrow" or settings.spark
                or (self.engine == "auto" and not ACTIONS[self.job].uses_spark)
            ):  # fmt: skip
                try:
                    return self._run_here(run, settings, arguments, approved)
                except InvalidInput:  # of an action that needs Spark only for some arguments
                    log.info("this needs Spark, so it is submitted as a job")
            return self._submit(context, run, settings, parsed, arguments, approved)

    def _run_here(
        self,
        run: RunId,
        settings: Settings,
        arguments: dict[str, object],
        approved: dict[str, object] | None = None,
    ) -> dict[str, object]:
        """Run the action in this process. Raises InvalidInput if it needs Spark and may have it,
        and for all else what Airflow has for it."""
        with Database.of(settings) as database:
            job = LinkedJob(
                self.job, run, settings, database, start_spark=self._start_spark(settings),
                own=self._own, approved=approved,
            )  # fmt: skip
            try:
                with self._in_this_process():
                    report = perform(job, ACTIONS[self.job], arguments)
                self.sentence = job.sentence
                return report
            except BaseException as error:  # what Airflow raises for a time-out is no Exception
                self._end_lease()
                if getattr(error, "code", "") == "spark_not_given" and self.engine == "auto":
                    raise
                told = error if isinstance(error, Exception) else KeyboardInterrupt()
                record_failure(job, told)
                if not isinstance(error, (Exception, KeyboardInterrupt)):
                    raise
                cause = None if isinstance(error, WeirError) else error
                raise failure(*failure_of(told)) from cause
            finally:
                self.spark_pages = job.pages

    def _submit(
        self,
        context: object,
        run: RunId,
        settings: Settings,
        parsed: object,
        arguments: dict[str, object],
        approved: dict[str, object] | None,
    ) -> dict[str, object] | None:
        deploy_mode = self._check_connection()
        if self.conn_id and deploy_mode == "cluster":
            raise AirflowFailException(
                f"connection {self.conn_id!r} names the installation, which a driver in the "
                "cluster could be told only where its password would be shown; use the deploy mode "
                "client, or WEIR_CONFIG in the cluster's environment."
            )
        if deploy_mode != "cluster" and is_short(self.job, parsed, settings):
            # First, so that what somebody else says of it wins; in a cluster it is refused.
            options = f"{SHORT_JOB} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
            self.env_vars = {"SPARK_SUBMIT_OPTS": options, **(self.env_vars or {})}
        words = "form" if self.arguments is None else "dag"
        self.application_args = [
            "--run", json.dumps(run.__dict__), "--front-end", words,
        ]  # fmt: skip
        with failing(), Database.of(settings) as database:
            # What a driver sees elsewhere, or with packages that it is sent, is not known here.
            here = deploy_mode != "cluster" and not (self.py_files or self._archives)
            job = Job(
                self.job, run, settings, database, arguments, start_spark=no_spark,
                approved=approved,
            )  # fmt: skip
            check_early(job, ACTIONS[self.job], parsed, here=here)
            hand_over(database, run, self.job, arguments, approved)
        self.submitted = True  # from here on, the job says what becomes of it
        failed: Exception | None = None
        try:
            with environment(as_environment(settings) if self.conn_id else {}):
                super().execute(context)
        except Exception as error:  # of a driver in a cluster the provider raises others, too
            failed = error
            self._end_lease()
        return self._outcome(run, settings, failed)

    def get_openlineage_facets_on_complete(
        self, _task_instance: object
    ) -> "OperatorLineage | None":
        """Return what the task read and wrote. The provider of OpenLineage calls this, if it is
        installed and enabled."""
        from weir.airflow.open_lineage import as_open_lineage, things_of

        run = self._run
        if run is None:
            return None
        with failing(), Database.of(settings_of(self.conn_id)) as database:
            return as_open_lineage(database.snapshot(lambda c: things_of(c, run)))

    def on_kill(self) -> None:
        """Stop the job and end the lease of its reader, because Airflow stops the task."""
        if self._here:
            raise KeyboardInterrupt  # which unwinds the action: it is recorded as killed
        super().on_kill()
        self._end_lease()

    def _end_lease(self) -> None:
        if self._reader is not None:
            with contextlib.suppress(Exception):  # the lease also expires by itself
                self._reader.ended()

    def _outcome(
        self, run: RunId, settings: Settings, failed: Exception | None
    ) -> dict[str, object] | None:
        with failing(), Database.of(settings) as database:
            state, report, sentence, retryable = read_outcome(database, run)
            if state == "succeeded":  # of this very try, whatever became of what submitted it
                if failed is not None:
                    log.warning("the job has succeeded, though it is reported: %s", failed)
                self.sentence = sentence
                return report
            if failed is not None and not sentence:
                sentence = (
                    f"the process of job {self.job} ended without a word ({failed}): it was "
                    "killed, or its memory was used up; the log above has its last lines."
                )
                if state == "submitted":  # one that runs shows no sign of life from now on
                    database.transaction(lambda c: record_end(c, run, "killed", error=sentence))
        raise failure(sentence or f"the job is {state}", retryable or not sentence)

    def _settings(self) -> Settings:
        """Return the settings of the installation; without a Spark, if one is to be started."""
        found = settings_of(self.conn_id)
        return replace(found, spark="") if self.submits else found

    def _start_spark(self, settings: Settings) -> Callable[[], NoReturn] | None:
        """Return what starts Spark in the worker; None: a session of its own."""
        may = self.engine == "spark" or (self.engine == "auto" and settings.spark)
        return None if may else no_spark

    @contextlib.contextmanager
    def _in_this_process(self) -> Iterator[None]:
        """Let `on_kill` unwind the block."""
        self._here = True
        try:
            yield
        finally:
            self._here = False

    @contextlib.contextmanager
    def _session_here(self, settings: Settings) -> Iterator[None]:
        """Let a session that is started in this process be as spark-submit would start it."""
        if settings.spark:
            yield
            return
        cluster = self.engine == "spark" and self._check_connection() == "cluster"
        if cluster and not ACTIONS[self.job].measure:
            raise AirflowFailException(
                f"connection {self._conn_id!r} has the deploy mode cluster, whose drivers do not "
                "have the code of this DAG file; use client."
            )
        if self.engine != "spark" or cluster:
            yield
            return
        command = self._get_hook()._build_spark_submit_command("pyspark-shell")
        with environment({"PYSPARK_SUBMIT_ARGS": shlex.join(command[1:])}):
            yield

    def _check_connection(self) -> str:
        """Return the deploy mode, empty for the default."""
        connection = spark_connection(self._conn_id)
        self.yarn_address = str(
            connection.extra_dejson.get("yarn_resourcemanager_webapp_address") or ""
        ).rstrip("/")
        return str(self._deploy_mode or connection.extra_dejson.get("deploy-mode") or "")
