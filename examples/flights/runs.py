"""Start DAG runs over Airflow's REST API, as its UI does, and wait for their reports."""

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from weir.database.connection import Database
from weir.errors import NotFound, Unavailable, WeirError
from weir.local.airflow_api import AirflowApi

INDENT = 36  # columns before what is said about a run
PATIENCE = 600.0  # seconds for runs that were started together; 10 are usual


@dataclass(frozen=True)
class Run:
    """A run to start: the DAG, the filled-in form, and what the run is about."""

    dag: str
    form: dict[str, Any]
    about: str
    outcome: Callable[[dict[str, Any]], str] = lambda report: "done"
    fails: bool = False  # it must fail, and its outcome is the sentence with which it did


@dataclass(frozen=True)
class Ended:
    """How a run ended: the report of its job, or the sentence with which it failed."""

    run: Run
    run_id: str
    state: str
    report: dict[str, Any]
    error: str
    seconds: float


class Runs:
    """The runs of one story. Each is printed with its seconds when it ends."""

    def __init__(self, api: AirflowApi, database: Database, say: Callable[[str], None]) -> None:
        self._api = api
        self._database = database
        self._say = say
        self.began = time.monotonic()

    def chapter(self, title: str) -> None:
        """Say what comes next, and the time since the beginning."""
        seconds = int(time.monotonic() - self.began)
        self._say(f"\n{seconds // 60}:{seconds % 60:02}  {title}")

    def together(self, *runs: Run) -> list[Ended]:
        """Start runs at the same time and wait for all. Raises WeirError if one ends otherwise
        than it should."""
        begun = time.monotonic()
        waiting = [(run, self._api.trigger(run.dag, run.form)) for run in runs]
        ended: dict[str, Ended] = {}
        order = [run_id for _, run_id in waiting]
        while waiting:
            for run, run_id in list(waiting):
                state = self._api.get(f"/dags/{run.dag}/dagRuns/{run_id}")["state"]
                if state in ("success", "failed"):
                    waiting.remove((run, run_id))
                    ended[run_id] = self._end(run, run_id, state, time.monotonic() - begun)
            if waiting and time.monotonic() - begun > PATIENCE:
                run, run_id = waiting[0]
                raise Unavailable(
                    "run_not_over", f"{run.dag} {run_id} has not ended after {PATIENCE:.0f} s."
                )
            time.sleep(1.0)  # each question costs Airflow's server a twentieth of that
        return [ended[run_id] for run_id in order]

    def ended(self, name: str, seconds: float, what: str) -> None:
        """Say what something did, and how long it took."""
        self._say(f"      {seconds:5.1f} s  {name:19}  {what}")

    @contextmanager
    def paused(self, dag: str) -> Iterator[None]:
        """Pause a DAG during the block. It has no scheduled runs then, and runs where the story has
        it."""
        self._pause(dag, True)
        try:
            yield
        finally:
            self._pause(dag, False)

    @contextmanager
    def unpaused(self, dag: str) -> Iterator[None]:
        """Unpause a DAG during the block, because a triggered run of a paused DAG would wait for
        ever."""
        self._pause(dag, False)
        try:
            yield
        finally:
            self._pause(dag, True)

    def _pause(self, dag: str, paused: bool) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._api.patch(f"/dags/{dag}", {"is_paused": paused})
                return
            except NotFound:  # just after its start Airflow has not read the DAG's file yet
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def _end(self, run: Run, run_id: str, state: str, seconds: float) -> Ended:
        job = self._database.transaction(
            lambda c: c.execute(
                text(
                    """SELECT report, error FROM job_runs WHERE dag_id = :dag AND run_id = :run
                    ORDER BY try_number DESC LIMIT 1"""
                ),
                {"dag": run.dag, "run": run_id},
            ).one_or_none()
        )
        report = dict(job.report or {}) if job else {}
        ended = Ended(run, run_id, state, report, (job.error or "") if job else "", seconds)
        if (state == "failed") != run.fails:
            why = self._api.failure(run.dag, run_id) if state == "failed" else "it did not fail"
            raise WeirError(
                "run_failed", f"{run.dag} ({run.about}) ended with {state}: {ended.error}\n{why}"
            )
        outcome = "refused, as it should be:" if run.fails else run.outcome(report)
        self.ended(run.dag.removeprefix("weir_"), seconds, f"{run.about}: {outcome}")
        for line in textwrap.wrap(ended.error, 100 - INDENT, break_long_words=False):
            self._say(" " * INDENT + line)
        return ended
