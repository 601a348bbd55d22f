"""Readers as mapped tasks, whose leases end early when Airflow reports that a task has ended.

See docs/architecture.md, *When a reader dies*. Ending a lease only permits a take-over: a reader
that is alive after all continues until it is replaced.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import task
from sqlalchemy import Connection, text

from weir.database.background import repeating
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import speaking
from weir.history.job_runs import RunId
from weir.operations.consumers import Process, changed_settings, with_declared
from weir.operations.form import parse
from weir.operations.jobs import FORMS
from weir.settings import Settings, load

log = logging.getLogger("weir.airflow")

# Seconds between two polls of Airflow by a group, however many readers it has.
EVERY = 2.0
ALIVE = ("running", "restarting")
# Run id -> task id, with its map index after a _ if it has one -> state.
Answer = Mapping[str, Mapping[str, str | None]]
States = Callable[..., Answer]


@task(task_id="readers")  # type: ignore[untyped-decorator]  # it has none in Airflow
def form_per_reader(params: dict[str, object]) -> list[dict[str, object]]:
    """Return what a person has given in the form of a run, once for each reader that it or the
    declared consumer asks for, to be mapped over. Raises AirflowFailException for a wrong value."""
    try:
        with speaking("form", FORMS, "process"):
            form = parse(Process, dict(params))
            given = {"reader_group": form.reader_group, **changed_settings(form)}
            with _database(load()) as (database, _):
                readers = database.transaction(lambda c: with_declared(c, given)).readers
            return [given] * readers
    except InvalidInput as error:
        raise AirflowFailException(str(error)) from None


@dataclass(frozen=True)
class ReaderTask:
    """The Airflow task of a reader, its reader group, and the settings of its installation."""

    group: str
    run: RunId
    settings: Settings

    def ended(self) -> None:
        """End the reader's lease because its task failed or was killed, unless a later try has
        begun."""
        with _database(self.settings) as (database, lease):
            token = database.transaction(self._token)
            if token is not None:
                self._end(database, self.run, token, lease)

    def _token(self, connection: Connection) -> int | None:
        found: int | None = connection.execute(
            text(
                """SELECT r.token FROM reader r JOIN reader_group g USING (group_id)
                WHERE g.name = :group AND r.reader_id = :reader AND NOT EXISTS (
                    SELECT FROM job_run j WHERE j.dag_id = :dag_id AND j.run_id = :run_id
                    AND j.task_id = :task_id AND j.map_index = :map_index
                    AND j.try_number > :try_number)"""
            ),
            {"group": self.group, "reader": str(self.run), **self.run.__dict__},
        ).scalar_one_or_none()
        return found

    @contextmanager
    def watching(self, states: States) -> Iterator[None]:
        """While the block runs, poll Airflow for the tasks of the group's other readers, and end
        the leases of those that do not run."""
        others = 0

        def step() -> float:
            nonlocal others
            try:
                others = self.end_leases_of_ended(states)
            except Exception as error:  # a hint is not worth failing for
                log.info("the other readers of group %s are not watched: %s", self.group, error)
            return EVERY * (others + 1)

        with repeating("readers", step, patience=5.0):
            yield

    def end_leases_of_ended(self, states: States) -> int:
        """Poll once. Return how many other readers the group has."""
        with _database(self.settings) as (database, lease):
            # Tokens are read first: a token that is given out later belongs to a task that runs.
            tokens = database.transaction(self._others)
            others = {run: t for reader, t in tokens.items() if (run := RunId.of(reader))}
            for dag_id in {run.dag_id for run in others}:
                of_dag = [run for run in others if run.dag_id == dag_id]
                answer = states(
                    dag_id=dag_id,
                    task_ids=sorted({run.task_id for run in of_dag}),
                    run_ids=sorted({run.run_id for run in of_dag}),
                )
                for run in over(of_dag, answer):
                    log.info("the task of reader %s does not run: its lease ends now", run)
                    self._end(database, run, others[run], lease)
            return len(tokens)

    def _end(self, database: Database, run: RunId, token: int, lease: float) -> None:
        from weir.reader_groups.groups.readers import leave  # a DAG file does not need it

        leave(database, self.group, str(run), token, lease)

    def _others(self, connection: Connection) -> dict[str, int]:
        rows = connection.execute(
            text(
                """SELECT r.reader_id, r.token FROM reader r JOIN reader_group g USING (group_id)
                WHERE g.name = :group AND r.reader_id <> :reader
                  AND r.lease_until > '-infinity'"""
            ),
            {"group": self.group, "reader": str(self.run)},
        )
        return {row.reader_id: row.token for row in rows}


def over(runs: Sequence[RunId], answer: Answer) -> list[RunId]:
    """Return the runs whose tasks do not run, according to Airflow's answer. A task that is not in
    the answer counts as running."""
    gone = []
    for run in runs:
        tasks = answer.get(run.run_id, {})
        key = run.task_id if run.map_index < 0 else f"{run.task_id}_{run.map_index}"
        if key in tasks and tasks[key] not in ALIVE:
            gone.append(run)
    return gone


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[Database, float]]:
    """Yield connections with a short patience, because a hint is not worth waiting for, and the
    configured lease in seconds."""
    settings = replace(settings, outage_patience=5.0, connect_patience=5.0)
    with Database.of(settings) as database:
        yield database, settings.reader_lease
