"""How Airflow learns that a job has something to do, and that a task that has nothing to do ends at
once."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from tests.airflow.triggerer import Triggerer, in_a_loop
from tests.crash.jobs import write_config
from tests.watching import count_statements
from tests.world.streams import Lane, rows, run
from weir.airflow import work
from weir.airflow.forms import form
from weir.airflow.periodic import PeriodicJobOperator
from weir.airflow.work import WorkTrigger, due, look, work_asset
from weir.database.connection import Database
from weir.operations.work import patience_of
from weir.settings import Settings

Execute = Callable[..., Any]
MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def installed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    yield
    work._wanted.clear()


def succeeded(database: Database, *jobs: str) -> None:
    """Record that jobs have done all that they had to do."""
    for job in jobs:
        run(
            database,
            """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                    state)
            VALUES (:job, 'r', :job, -1, 1, :job, '{}', 'succeeded')""",
            job=job,
        )


def trigger_of(job: str, schedule: str) -> WorkTrigger:
    """The trigger of a job, as the triggerer makes it."""
    [watcher] = work_asset(job, schedule).watchers
    path, given = watcher.trigger.serialize()
    assert path == "weir.airflow.work.WorkTrigger"
    return WorkTrigger(**given)


def test_a_job_is_looked_for_when_its_schedule_comes_round() -> None:
    work._wanted.update([("scale", "4-59/5 * * * *"), ("upkeep", "17 * * * *")])
    assert due(NOON, NOON + 3 * MINUTE) == []
    assert due(NOON + 3 * MINUTE, NOON + 4 * MINUTE) == ["scale"]
    assert due(NOON + 4 * MINUTE, NOON + 5 * MINUTE) == []
    assert due(NOON, NOON + 60 * MINUTE) == ["scale", "upkeep"], "after a triggerer was away"


def test_a_schedule_that_is_none_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="columns"):
        work_asset("scale", "now and then")


def test_one_statement_asks_for_all_jobs(database: Database, settings: Settings) -> None:
    succeeded(database, "stream_cuts", "scale", "checkpoints")
    patience = patience_of(settings)
    seen = count_statements(database)
    assert look(database, ["checkpoints", "scale", "stream_cuts"], patience) == {}
    assert len(seen) == 1
    Lane.made(database).append({"0.0": 1})
    found = look(database, ["checkpoints", "scale", "stream_cuts"], patience)
    assert found == {"stream_cuts": "streams have moved"}


def test_what_is_not_known_begins(database: Database, settings: Settings) -> None:
    gone = Database("host=127.0.0.1 port=1", patience=0.0, connect_patience=0.0)
    assert look(gone, ["scale"], patience_of(settings)) == {"scale": "it is not known"}


def test_a_trigger_fires_each_time_that_there_is_something_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeeded(database, "stream_cuts", "scale")
    minutes = iter(NOON + n * MINUTE for n in range(1_000_000))
    monkeypatch.setattr(work, "_this_minute", lambda: next(minutes))
    monkeypatch.setattr(work, "EVERY", 0.01)

    async def play() -> None:
        triggerer = Triggerer()
        triggers = [trigger_of(job, "* * * * *") for job in ("stream_cuts", "scale")]
        triggerer.start(*triggers)
        await triggerer.until(lambda: next(minutes) > NOON + 20 * MINUTE)
        assert not triggerer.events
        Lane.made(database).append({"0.0": 1})
        await triggerer.until(lambda: len(triggerer.events) > 1)
        fired = {(trigger.job, event["work"]) for trigger, event in triggerer.events}
        assert fired == {("stream_cuts", "streams have moved")}
        await triggerer.stop()

    in_a_loop(play)


def task_of(job: str, arguments: dict[str, Any] | None = None) -> PeriodicJobOperator:
    """The task of a DAG with a schedule."""
    with DAG(f"weir_{job}", schedule=None, params=form(job)):
        return PeriodicJobOperator(task_id=job, job=job, engine="pyarrow", arguments=arguments)


def test_a_task_that_has_nothing_to_do_succeeds_at_once_and_leaves_no_row(
    database: Database, execute: Execute
) -> None:
    succeeded(database, "checkpoints")
    task = task_of("checkpoints")
    assert execute(task) is None
    assert task.sentence == "nothing to do for job checkpoints"
    assert len(rows(database, "SELECT FROM job_run")) == 1


def test_a_task_that_has_something_to_do_runs_its_job(database: Database, execute: Execute) -> None:
    assert execute(task_of("checkpoints"))["checkpoints"] == []
    assert len(rows(database, "SELECT FROM job_run")) == 1


def test_who_fills_in_the_form_gets_an_answer_though_nothing_is_to_do(
    database: Database, execute: Execute
) -> None:
    succeeded(database, "scale")
    assert execute(task_of("scale")) is None
    assert execute(task_of("scale", {"dry_run": False})) is None
    assert execute(task_of("scale", {"dry_run": True})) == {"decisions": []}
