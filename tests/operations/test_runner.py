"""What is known of jobs, and for how long."""

import json
import subprocess
import sys
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.conftest import TestDatabase
from tests.crash.jobs import wait_for
from tests.world.groups import Group
from tests.world.jobs import main
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.history.job_runs import RunId, prune_runs, read_outcome
from weir.operations.action import Job
from weir.operations.consumers import with_declared
from weir.operations.runner import hand_over
from weir.reader_groups.groups.consumers import declare_consumer


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
    assert "[argument_missing]" in capsys.readouterr().out


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
    assert "\"Stream\" is 'nowhere'" in sentence  # as in the form that has submitted it


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


def runs(database: Database) -> list[tuple[Any, ...]]:
    """What the view says of each run: its state, whether it has ended, and its error."""
    return database.transaction(
        lambda c: [
            tuple(row)
            for row in c.execute(
                text(
                    """SELECT state, ended_at IS NOT NULL, coalesce(error, '') FROM weir.job_runs
                    ORDER BY started_at"""
                )
            )
        ]
    )


def leave(how: str) -> dict[str, Any]:
    """Leave a job in a way that returns nothing."""
    match how:
        case "sys.exit":
            sys.exit()
        case "sys.exit(0)":
            sys.exit(0)
        case "exit of another's library":
            unittest.main(argv=["none"], module=None)
        case "interrupt":
            raise KeyboardInterrupt
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["sys.exit", "sys.exit(0)", "exit of another's library"])
def test_code_that_exits_fails_its_job_in_one_sentence_and_for_good(
    database: Database, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    assert main("upkeep", lambda job, arguments: leave(how), ["--arguments", "{}"]) == 2
    assert "job upkeep was told to exit (SystemExit" in capsys.readouterr().out
    ((state, ended, error),) = runs(database)
    assert (state, ended) == ("failed", True)
    assert "[function_invalid]" in error


def test_an_interrupted_job_says_that_it_was_killed(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("upkeep", lambda job, arguments: leave("interrupt"), ["--arguments", "{}"]) == 1
    assert "upkeep failed: it was interrupted" in capsys.readouterr().out
    ((state, ended, error),) = runs(database)
    assert (state, ended) == ("killed", True)
    assert "interrupted" in error


@pytest.mark.parametrize("how", ["os._exit(0)", "os.abort()", "os.kill(os.getpid(), 9)"])
def test_a_job_whose_process_dies_without_a_word_is_killed_and_not_running_for_ever(
    database: Database, how: str
) -> None:
    program = (
        "import os\nfrom tests.world.jobs import main\n"
        f"main('upkeep', lambda job, arguments: {how}, ['--arguments', '{{}}'])"
    )
    subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert [state for state, *_ in runs(database)] == ["running"], "it may be alive"
    older = "UPDATE job_run SET updated_at = updated_at - interval '121 seconds'"
    database.transaction(lambda c: c.execute(text(older)))
    assert runs(database) == [("killed", True, "")]


def test_a_job_that_is_alive_shows_it_however_long_it_says_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.operations.runner.SIGN_OF_LIFE", 0.05)

    def work(job: Job, arguments: Any) -> dict[str, Any]:
        older = "UPDATE job_run SET updated_at = updated_at - interval '121 seconds'"
        database.transaction(lambda c: c.execute(text(older)))
        wait_for("a sign of life", lambda: runs(database) == [("running", False, "")])
        return {}

    assert main("upkeep", work, ["--arguments", "{}"]) == 0
    assert runs(database) == [("succeeded", True, "")]


def test_a_later_try_says_of_those_before_it_that_they_were_killed(database: Database) -> None:
    run = RunId("weir", "a", "t")
    hand_over(database, run, "upkeep", {})
    hand_over(database, replace(run, task_id="other"), "upkeep", {})
    hand_over(database, replace(run, try_number=2), "upkeep", {})
    states = [(state, ended) for state, ended, _ in runs(database)]
    assert states == [("killed", True), ("submitted", False), ("submitted", False)]


def test_a_process_that_is_told_to_end_says_so_and_leaves_nothing_open(
    database: Database, tmp_path: Path
) -> None:
    lane = Lane.made(database)
    program = (
        "import sys, time\nfrom weir.operations.jobs import ACTIONS\n"
        "from weir.operations.runner import main\n"
        "from weir.controller.attempts import writing\n"
        "from weir.controller.transactions import begin\n"
        "from dataclasses import replace\nfrom weir.model.names import stream_name\n"
        "def work(job, arguments):\n"
        f"    opened = [begin(job.database, stream_name('{lane.name}'), writer_id='w',\n"
        "        batch_id='b', fingerprint='f', lease=60.0, source='s')]\n"
        f"    settings = replace(job.settings, warehouse={str(tmp_path)!r})\n"
        "    with writing(job.database, settings, opened):\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(600)\n"
        "sys.argv += ['--arguments', '{}']\n"
        "sys.exit(main(replace(ACTIONS['upkeep'], run=work)))"
    )
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)

    def states() -> list[str]:
        found = "SELECT state FROM weir_internal.transaction"
        return list(database.transaction(lambda c: c.execute(text(found)).scalars()))

    assert running.stdout is not None
    assert any(b"writing" in line for line in iter(running.stdout.readline, b""))
    assert states() == ["open"]
    running.terminate()
    printed, _ = running.communicate(timeout=300)
    assert running.returncode == 1
    assert b"it was interrupted" in printed
    assert states() == ["aborted"]
    assert [state for state, *_ in runs(database)] == ["killed"]
