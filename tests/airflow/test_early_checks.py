"""What can't succeed fails before a JVM is started, in a moment, with the sentence of the job."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import weir
from tests.airflow.conftest import connect
from weir.airflow.operators import WeirJobOperator
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_start, was_begun
from weir.settings import Settings

Execute = Callable[..., Any]
LIMIT = 1.0  # second of the processor: what else runs here is no part of the check


@pytest.fixture(autouse=True)
def world(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is sealed, one that is not, a group, and files. Nothing may be submitted:
    `execute` has no spark-submit."""
    connect(monkeypatch)
    with weir.open(settings=settings) as store:
        for name in ("shop/orders", "shop/old"):
            store.create_stream(name, "n")
            store.append(name, [{"n": 1}])
        store.create_reader_group("totals", ["shop/orders"])
        for batch in store.reader("totals"):
            batch.commit({})
        store.seal_stream("shop/old")
    (Path(settings.input_roots[0]) / "more.csv").write_text("n\n2\n")


def task(job: str, given: dict[str, Any]) -> WeirJobOperator:
    with DAG("d"):
        return WeirJobOperator(task_id=job, job=job, arguments=given)


PROCESS = {"reader_group": "totals", "outputs": ["parquet:there"]}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("ingest", {"stream": "shop/other", "files": ["more.csv"]}, "stream_not_found"),
    ("ingest", {"stream": "shop/orders", "files": ["none.csv"]}, "file_not_found"),
    ("ingest", {"stream": "shop/orders", "files": ["/etc/passwd"]}, "path_not_allowed"),
    ("ingest", {"stream": "shop/old", "files": ["more.csv"]}, "stream_not_active"),
    ("process", PROCESS | {"reader_group": "other"}, "group_not_found"),
    ("process", {"reader_group": "totals"}, "argument_missing"),
    ("process", PROCESS | {"function": "os:system"}, "function_not_allowed"),
    ("process", PROCESS | {"function": "tests.nowhere:f"}, "function_not_loadable"),
    ("process", PROCESS | {"function": "tests.airflow.conftest:exekute"}, "function_not_loadable"),
    ("process", PROCESS | {"function": "tests.airflow.conftest:execute",
                           "outputs": ["stream:shop/none"]}, "stream_not_found"),
    ("put_back", {"reader_group": "other"}, "group_not_found"),
    ("verify", {"stream": "shop/other"}, "stream_not_found"),
    ("back_test", {"stream": "shop/other"}, "stream_not_found"),
    ("scale_stream", {"stream": "shop/orders", "segments": ["7.0"]}, "segment_not_active"),
    ("update_stream", {"stream": "shop/orders", "drop_columns": ["m"]}, "columns_in_use"),
    ("create_stream", {"stream": "shop/orders", "routing_key": "m"}, "stream_exists"),
    ("create_reader_group", {"reader_group": "new", "streams": ["shop/none"]}, "stream_not_found"),
    ("create_reader_group", {"reader_group": "totals", "streams": ["shop/old"]}, "group_exists"),
    ("fork_reader_group", {"reader_group": "totals", "new_reader_group": "b", "at": "checkpoint x"},
     "checkpoint_not_found"),
    ("reset_reader_group", {"reader_group": "totals", "to": "start", "dry_run": True},
     "events_would_repeat"),
    ("delete_stream", {"stream": "shop/orders", "dry_run": True}, "stream_not_sealed"),
    ("define_adjunct_store", {"adjunct_store": "shop/new", "stream": "shop/orders", "key": "m"},
     "expression_not_computable"),
    ("delete_adjunct_store", {"adjunct_store": "shop/none", "dry_run": True},
     "adjunct_store_not_found"),
    ("checkpoint_reader_group", {"reader_group": "other", "name": "x"}, "group_not_found"),
    ("compact", {"streams": ["shop/none"]}, "stream_not_found"),
    ("publish", {"streams": ["shop/none"]}, "stream_not_found"),
]  # fmt: skip


@pytest.mark.parametrize(("job", "given", "code"), WRONG)
def test_what_cannot_succeed_fails_in_its_first_second(
    job: str, given: dict[str, Any], code: str, execute: Execute, database: Database
) -> None:
    operator = task(job, given)
    begun = time.process_time()
    with pytest.raises(AirflowFailException) as failed:
        execute(operator)
    took = time.process_time() - begun
    print(f"{job}: {took:.2f} s: {failed.value}")
    assert f"[{code}]" in str(failed.value)
    assert took < LIMIT
    assert not was_begun(database, RunId("d", "r", job))


@pytest.mark.parametrize(
    ("job", "given"),
    [
        ("seal_stream", {"stream": "shop/orders"}),
        ("scale_stream", {"stream": "shop/orders", "segments": ["0.0"], "parts": 3}),
        ("delete_stream", {"stream": "shop/old", "dry_run": True}),
        ("define_adjunct_store", {"adjunct_store": "shop/new", "stream": "shop/orders"}),
        ("ingest", {"stream": "shop/orders", "files": ["more.csv"]}),
        ("process", PROCESS | {"function": "tests.airflow.conftest:execute"}),
        ("create_stream", {"stream": "shop/new", "routing_key": "n", "schema": "n INT"}),
    ],
)
def test_what_may_succeed_is_submitted_and_what_was_tried_is_undone(
    job: str, given: dict[str, Any], execute: Execute, database: Database, settings: Settings
) -> None:
    with pytest.raises(AirflowException, match="spark-submit"):
        execute(task(job, given))
    assert was_begun(database, RunId("d", "r", job)), "it was submitted"
    with weir.open(settings=settings) as store:
        store.append("shop/orders", [{"n": 3}])  # which is neither sealed nor scaled
        assert store.count("shop/orders") == 2


def test_a_function_that_is_not_here_is_left_to_a_job_that_runs_elsewhere(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"adjunct_store": "shop/new", "stream": "shop/orders", "value": "tests.nowhere:f",
             "value_columns": "n INT"}  # fmt: skip
    with pytest.raises(AirflowFailException, match="function_not_loadable"):
        execute(task("define_adjunct_store", given))
    connect(monkeypatch, "yarn", "cluster")
    with pytest.raises(AirflowException, match="spark-submit"):
        execute(task("define_adjunct_store", given))


def test_a_run_that_was_begun_is_left_to_its_job_which_may_have_done_it(
    execute: Execute, database: Database
) -> None:
    operator = task("seal_stream", {"stream": "shop/none"})
    run = RunId("d", "r", "seal_stream", -1, 1)
    database.transaction(lambda c: record_start(c, run, "seal_stream", {}))
    with pytest.raises(AirflowException, match="spark-submit"):
        execute(operator, 2)
