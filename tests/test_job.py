"""What is known of jobs, and for how long."""

import pytest
from sqlalchemy import text

from tests.conftest import TestDatabase
from weir.job import RunId, forget_runs, main, read_outcome
from weir.storage import Database


@pytest.fixture
def database(test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    return test_database.open()


def run_job(task: str) -> RunId:
    """A job that succeeds."""
    run = f'{{"dag_id": "weir", "run_id": "r", "task_id": "{task}"}}'
    assert main("upkeep", lambda job, arguments: {"done": task}, ["--run", run]) == 0
    return RunId("weir", "r", task)


def test_what_jobs_did_is_forgotten_after_a_while_but_not_of_those_that_still_say_something(
    database: Database,
) -> None:
    old, long, new = map(run_job, ("old", "long", "new"))
    database.transaction(
        lambda c: c.execute(
            text(
                """UPDATE job_run SET started_at = now() - interval '91 days',
                    updated_at = now() - CASE task_id WHEN 'old' THEN 91 ELSE 0.5 END
                                         * interval '1 day'
                WHERE task_id <> 'new'"""
            )
        )
    )
    assert forget_runs(database, 90 * 86400.0) == 1
    assert forget_runs(database, 0.0) == 0, "who submitted them may still ask"
    assert read_outcome(database, old)[0] == "unknown"
    for kept in (long, new):
        assert read_outcome(database, kept)[:2] == ("succeeded", {"done": kept.task_id})
