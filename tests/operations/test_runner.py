"""What is known of jobs, and for how long."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from tests.conftest import TestDatabase
from tests.controller.support import Lane
from tests.reader_groups.support import Group
from weir.database.connection import Database
from weir.history.job_runs import RunId, prune_runs, read_outcome
from weir.operations.consumers import with_declared
from weir.operations.runner import Job, hand_over, main
from weir.reader_groups.consumers import declare_consumer


@pytest.fixture
def database(test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    return test_database.open()


def run_job(task: str) -> RunId:
    """A job that succeeds."""
    run = f'{{"dag_id": "weir", "run_id": "r", "task_id": "{task}"}}'
    words = ["--run", run, "--arguments", "{}"]
    assert main("upkeep", lambda job, arguments: {"done": task}, words) == 0
    return RunId("weir", "r", task)


def test_runs_of_jobs_are_pruned_after_a_while_but_not_those_that_still_say_something(
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
    assert prune_runs(database, 90 * 86400.0) == 1
    assert prune_runs(database, 0.0) == 0, "who submitted them may still ask"
    assert read_outcome(database, old)[0] == "unknown"
    for kept in (long, new):
        assert read_outcome(database, kept)[:2] == ("succeeded", {"done": kept.task_id})


def test_arguments_longer_than_a_command_line_are_handed_over_to_the_run_that_was_submitted(
    database: Database,
) -> None:
    run = RunId("weir_ingest", "manual", "ingest")
    paths = [f"days/{'x' * 200}{i}.csv" for i in range(4000)]
    hand_over(database, run, "ingest", {"stream": "s/events", "files": paths, "format": "csv"})
    assert read_outcome(database, run)[0] == "submitted"
    words = ["--run", json.dumps(run.__dict__)]
    assert max(map(len, words)) < 1000
    assert main("ingest", lambda job, given: {"paths": len(given.files)}, words) == 0
    assert read_outcome(database, run)[:2] == ("succeeded", {"paths": 4000})


def test_what_was_handed_over_to_one_run_is_not_what_another_gets(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_over(database, RunId("weir", "a", "t"), "seal_stream", {"stream": "s/events"})
    words = ["--run", json.dumps(RunId("weir", "b", "t").__dict__)]
    assert main("seal_stream", lambda job, given: {}, words) == 2
    assert "[arguments_not_handed_over]" in capsys.readouterr().out


def test_a_run_without_what_was_handed_over_to_it_does_not_do_what_the_defaults_say(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_over(database, RunId("weir", "a", "t"), "checkpoints", {})
    words = ["--run", json.dumps(RunId("weir", "a", "t").__dict__)]
    done: list[str] = []

    def work(job: Job, arguments: Any) -> dict[str, Any]:
        done.append(job.name)
        return {}

    assert main("retention", work, words) == 2
    assert not done
    assert "job retention of run weir/a/t" in capsys.readouterr().out


def test_a_job_whose_arguments_are_wrong_is_recorded_as_failed(database: Database) -> None:
    run = RunId("weir", "a", "t")
    hand_over(database, run, "seal_stream", {"stream": "nowhere"})
    assert main("seal_stream", lambda job, given: {}, ["--run", json.dumps(run.__dict__)]) == 2
    state, _, sentence, retryable = read_outcome(database, run)
    assert (state, retryable) == ("failed", False)
    assert "stream is 'nowhere'" in sentence


def test_an_argument_that_is_given_counts_instead_of_the_declared_one_though_it_is_the_default(
    database: Database,
) -> None:
    name = Group.made(Lane.made(database)).name
    consumer = {"function": "a:b", "outputs": ["parquet:late"], "on_error": "quarantine"}
    declare_consumer(database, name, consumer, request_id="declared")

    def work(job: Job, _arguments: Any) -> dict[str, Any]:
        found = job.database.transaction(lambda c: with_declared(c, job.given))
        return {"on_error": found.on_error}

    for given, counts in (({}, "quarantine"), ({"on_error": "stop"}, "stop"),
                          ({"on_error": None}, "quarantine")):  # fmt: skip
        run = RunId("weir_process", str(given), "process")
        arguments = json.dumps({"reader_group": name, **given})
        words = ["--run", json.dumps(run.__dict__), "--arguments", arguments]
        assert main("process", work, words) == 0
        assert read_outcome(database, run)[1] == {"on_error": counts}
