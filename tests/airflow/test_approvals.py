"""What a task does when a person has answered; tests/acceptance/test_approvals.py asks for real."""

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from sqlalchemy import text

import weir
from tests.airflow.conftest import connect
from tests.conftest import TestDatabase
from tests.crash.jobs import write_config
from tests.world.streams import unique
from weir.airflow import EraseOperator, TruncateOperator
from weir.airflow.approvals import is_excused
from weir.airflow.operators import WeirJobOperator
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.operations.action import Job
from weir.operations.approval import Loss
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import by_hand, hand_over, main
from weir.settings import Settings

Execute = Callable[..., Any]


def answer(*chosen: str) -> Any:
    """What Airflow hands over when ann has answered."""
    return {
        "chosen_options": list(chosen), "params_input": {}, "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": "1", "name": "ann"},
    }  # fmt: skip


@pytest.fixture
def stream(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a stream of two events that a group has not read, and let jobs find it."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    connect(monkeypatch)
    name = unique("asked")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n")
        store.append(f"test/{name}", [{"n": 1}, {"n": 2}])
        store.create_reader_group(name, [f"test/{name}"])
    return f"test/{name}"


def context(task: Any, try_number: int = 1, **more: Any) -> Any:
    ti = SimpleNamespace(
        dag_id="d", run_id="r", task_id=task.task_id, map_index=-1, try_number=try_number,
        stats_tags={}, id="1",
    )  # fmt: skip
    return {"ti": ti, "params": {}, **more}


def loss_of(job: str, given: dict[str, Any], settings: Settings, database: Database) -> Loss:
    """Return what a person is shown."""
    measure = ACTIONS[job].measure
    assert measure is not None
    loss = measure(Job(job, by_hand("x"), settings, database), parse(FORMS[job], given))
    assert loss is not None
    return loss


def test_an_approval_is_done_rejected_timed_out_or_void(
    stream: str, settings: Settings, database: Database
) -> None:
    given = {"stream": stream, "cut": "tail", "dry_run": False}
    with DAG("mine", schedule=None):
        task = WeirJobOperator(
            task_id=unique("t"), job="truncate_stream", arguments=given, engine="auto"
        )
    loss = loss_of("truncate_stream", given, settings, database)
    kept = {"arguments": given | loss.arguments, "facts": loss.facts}
    with pytest.raises(AirflowSkipException, match="ann rejected it"):
        task.approved(context(task), answer("Reject"), **kept)
    with pytest.raises(AirflowFailException, match="nobody approved it in time"):
        task.approved(context(task), {"error": "late", "error_type": "timeout"}, **kept)
    moved = {**kept, "facts": {**loss.facts, "lost": {}}}
    with pytest.raises(AirflowFailException, match="approval_void"):
        task.approved(context(task), answer("Approve"), **moved)
    with weir.open(settings=settings) as store:
        assert store.count(stream) == 2
        report = task.approved(context(task), answer("Approve"), **kept) or {}
        assert (report["events"], report["approved_by"]) == (2, "ann")
        store.append(stream, [{"n": 3}])
        cleared = task.execute(context(task, 2))
        assert cleared is not None
        assert (cleared["events"], store.count(stream)) == (2, 1)


def test_an_erasure_asks_with_its_dry_run_and_a_cleared_task_asks_no_more(
    stream: str, settings: Settings, database: Database
) -> None:
    given: dict[str, Any] = {
        "stream": stream, "reason": "asked", "keys": ["1"], "dry_run": False,
    }  # fmt: skip
    with DAG("mine", schedule=None):
        task = EraseOperator(task_id=unique("t"), engine="auto", **given)
    loss = loss_of("erase", given, settings, database)
    assert loss.lines[0] == f"would erase 1 event of stream {stream}, in 1 file"
    assert "would leave backups" in str(loss.lines)
    facts = json.loads(json.dumps(loss.facts))  # as Airflow keeps them
    with weir.open(settings=settings) as store:
        store.append(stream, [{"n": 1}])
        with pytest.raises(AirflowFailException, match="approval_void"):
            task.approved(context(task), answer("Approve"), arguments=given, facts=facts)
        loss = loss_of("erase", given, settings, database)
        facts = json.loads(json.dumps(loss.facts))
        report = task.approved(context(task), answer("Approve"), arguments=given, facts=facts)
        assert report is not None
        assert (report["events"], report["signed"], report["approved_by"]) == (2, True, "ann")
        cleared = task.execute(context(task, 2))
        assert cleared is not None
        assert (cleared["events"], store.count(stream)) == (2, 1)


def test_dags_that_say_so_and_dry_runs_ask_nobody(execute: Execute, stream: str) -> None:
    with DAG("mine", schedule=None):
        silent = TruncateOperator(
            task_id="b", stream=stream, cut="tail", dry_run=False, approval=False, engine="auto"
        )
        counting = TruncateOperator(task_id="c", stream=stream, cut="tail", engine="auto")
    assert (execute(counting) or {})["dry_run"] is True
    assert (execute(silent) or {})["events"] == 2


def test_a_login_of_the_role_is_not_asked_and_a_superuser_is_no_member(
    execute: Execute, stream: str, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    with DAG("mine", schedule=None):
        task = TruncateOperator(
            task_id="a", stream=stream, cut="tail", dry_run=False, engine="auto"
        )
    superuser = Database(
        postgres_server.dsn(test_database.name, "postgres"), patience=60, connect_patience=60
    )
    with test_database.open() as jobs, superuser:
        assert not is_excused(jobs), "nobody has made the role"
        postgres_server.psql("CREATE ROLE weir_no_approval; CREATE ROLE scripts")
        try:
            postgres_server.psql("GRANT weir_no_approval TO scripts")
            assert not is_excused(jobs)
            assert not is_excused(superuser)
            postgres_server.psql("GRANT scripts TO weir_app")
            assert is_excused(jobs)
            assert (execute(task) or {})["events"] == 2
        finally:
            postgres_server.psql("DROP ROLE weir_no_approval; DROP ROLE scripts")


@pytest.mark.jvm
def test_what_a_person_approved_is_done_by_a_submitted_job_unless_the_world_has_moved(
    stream: str,
    settings: Settings,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", found)  # where spark-submit is
    given = {"stream": stream, "cut": "tail", "dry_run": False}
    with DAG("mine", schedule=None):
        task = WeirJobOperator(task_id=unique("t"), job="truncate_stream", arguments=given)
    loss = loss_of("truncate_stream", given, settings, database)
    kept = {"arguments": given | loss.arguments, "facts": loss.facts}
    with weir.open(settings=settings) as store:
        store.append(stream, [{"n": 3}])
        moved = RunId("d", "moved", task.task_id)
        facts = {**loss.facts, "lost": {}}
        hand_over(database, moved, "truncate_stream", kept["arguments"], facts)
        # As spark-submit would call it, but for the JVM.
        assert main(ACTIONS["truncate_stream"], ["--run", json.dumps(moved.__dict__)]) == 2
        assert "the approval is void" in capsys.readouterr().out
        # A worker that is killed here has handed over what was approved, and done nothing.
        run = RunId("d", "r", task.task_id)
        hand_over(database, run, "truncate_stream", kept["arguments"], kept["facts"])
        assert store.count(stream) == 3
        report = task.approved(context(task, 2), answer("Approve"), **kept) or {}
        assert (report["events"], report["approved_by"], store.count(stream)) == (2, "ann", 1)
    of_job = (
        "SELECT state, approved FROM weir_internal.job_run WHERE task_id = :task_id "
        "AND run_id = 'r' "
    )
    tries = database.transaction(
        lambda c: c.execute(text(of_job + "ORDER BY try_number"), {"task_id": task.task_id}).all()
    )
    assert tries == [("killed", loss.facts), ("succeeded", loss.facts)]
