"""A task that fails before its job begins is among the runs, and speaks the words of a DAG."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

import weir
from tests.airflow.conftest import connect
from tests.world.streams import rows, unique
from weir.airflow import (
    AppendOperator,
    AppendQueryOperator,
    CheckpointOperator,
    EraseOperator,
    ProcessOperator,
    StreamSensor,
    weir_append,
    weir_process,
)
from weir.airflow.operators import WeirJobOperator
from weir.database.connection import Database
from weir.history.job_runs import RunId, was_begun
from weir.operations.jobs import ACTIONS
from weir.operations.runner import main
from weir.settings import Settings

Execute = Callable[..., Any]


@pytest.fixture(autouse=True)
def world(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    connect(monkeypatch, mode="cluster", name="cluster")
    with weir.open(settings=settings) as store:
        for name in ("shop/orders", "shop/old"):
            store.create_stream(name, "n")
        store.create_reader_group("totals", ["shop/orders"])
        store.seal_stream("shop/old")


def fails() -> list[Any]:
    raise ValueError("the source is away")


def appending(name: str, stream: str, function: Any = fails, **given: Any) -> Any:
    return weir_append(stream=stream, task_id=name, **given)(function)().operator


def processing(name: str, *args: Any) -> Any:
    def own(events: Any, least: int = 1) -> Any:
        raise NotImplementedError

    made: Any = weir_process(reader_group="totals", outputs=["parquet:x"], task_id=name)
    return made(own)(*args).operator


def one() -> list[Any]:
    return [{"n": 1}]


KINDS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "submitted, no stream": (
        lambda name: AppendOperator(task_id=name, stream="shop/no", files=["a.csv"]),
        "ingest", "use CreateStreamOperator(stream='shop/no'",
    ),
    "submitted, sealed": (
        lambda name: AppendOperator(task_id=name, stream="shop/old", files=["a.csv"]),
        "ingest", "stream_not_active",
    ),
    "submitted, no file": (
        lambda name: AppendOperator(task_id=name, stream="shop/orders", files=["a.csv"]),
        "ingest", "file_not_found",
    ),
    "submitted, wrong argument": (
        lambda name: AppendOperator(
            task_id=name, stream="shop/orders", files=["a"], format="{{ 1 }}"
        ),
        "ingest", "argument_invalid",
    ),
    "no connection": (
        lambda name: AppendOperator(
            task_id=name, stream="shop/orders", files=["a"], spark_conn_id="nowhere"
        ),
        "ingest", "there is no connection 'nowhere'",
    ),
    "mapped, wrong argument": (
        lambda name: AppendOperator.partial(task_id=name, stream="shop/orders")
        .expand(files=[[]]).unmap({"files": []}),
        "ingest", "argument_invalid",
    ),
    "in the worker, no group": (
        lambda name: CheckpointOperator(task_id=name, reader_group="no", name="x"),
        "checkpoint_reader_group", "use CreateReaderGroupOperator(reader_group='no'",
    ),
    "in the worker, wrong argument": (
        lambda name: CheckpointOperator(task_id=name, reader_group="{{ '' }}", name="x"),
        "checkpoint_reader_group", "argument",
    ),
    "needs Spark": (
        lambda name: ProcessOperator(
            task_id=name, reader_group="totals", function="os:system", outputs=["parquet:x"]
        ),
        "process", "function_not_allowed",
    ),
    "asks for approval": (
        lambda name: EraseOperator(task_id=name, stream="shop/no", keys=["secret"], reason="r"),
        "erase", "stream_not_found",
    ),
    "a function fails": (
        lambda name: appending(name, "shop/orders"), "append", "the source is away",
    ),
    "a function, no stream": (
        lambda name: appending(name, "shop/no", one), "append",
        "use CreateStreamOperator(stream='shop/no'",
    ),
    "a query, no connection": (
        lambda name: AppendQueryOperator(
            task_id=name, stream="shop/orders", query="SELECT 1 AS n", spark_conn_id="nowhere"
        ),
        "append", "there is no connection 'nowhere'",
    ),
    "a query in a cluster": (
        lambda name: AppendQueryOperator(
            task_id=name, stream="shop/orders", query="SELECT 1 AS n",
            spark_conn_id="spark_cluster",
        ),
        "append", "deploy mode cluster",
    ),
    "a function of the DAG file": (
        lambda name: processing(name, 3), "process", "name the arguments",
    ),
    "a filled-in form": (
        lambda name: WeirJobOperator(task_id=name, job="ingest"), "ingest", '"Stream"',
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_fails_before_its_job_begins_is_among_the_runs(
    kind: str, execute: Execute, database: Database
) -> None:
    make, job, says = KINDS[kind]
    name = unique("t")
    with DAG("mine", schedule=None):
        operator = make(name)
    index = 0 if kind.startswith("mapped") else -1
    with pytest.raises((AirflowException, ValueError)):
        execute(operator, map_index=index)
    [run] = rows(database, "SELECT job, state, error, arguments FROM job_runs WHERE task_id = :t",
                 t=name)  # fmt: skip
    assert (run.job, run.state) == (job, "failed")
    assert says in run.error
    assert "weir.open()" not in run.error
    assert "secret" not in json.dumps(run.arguments)
    if "function" not in kind and "form" not in kind:
        given = operator.arguments or {}
        assert run.arguments.get("stream") == given.get("stream")


def test_a_task_that_is_skipped_is_no_run(execute: Execute, database: Database) -> None:
    def skips() -> list[Any]:
        raise AirflowSkipException

    with DAG("mine", schedule=None):
        operator = appending(name := unique("t"), "shop/orders", skips)
    with pytest.raises(AirflowSkipException):
        execute(operator)
    assert rows(database, "SELECT FROM job_runs WHERE task_id = :t", t=name) == []


def test_the_next_try_is_checked_early_again_and_then_runs(
    execute: Execute, database: Database, settings: Settings
) -> None:
    with DAG("mine", schedule=None):
        operator = CheckpointOperator(
            task_id="c", reader_group="{{ '' }}", name="noon", engine="auto"
        )
        appended = AppendOperator(task_id="a", stream="shop/no", files=["a.csv"])
    for number in (1, 2):
        with pytest.raises(AirflowException, match="stream_not_found"):
            execute(appended, number)
    assert not was_begun(database, RunId("mine", "r", "a"))
    with pytest.raises(AirflowException):
        execute(operator)
    operator.arguments = {"reader_group": "totals", "name": "noon"}
    assert execute(operator, 2)["checkpoint"] == "noon"
    assert execute(operator, 1)["checkpoint"] == "noon", "the same try again"
    states = rows(database, "SELECT state, error FROM job_runs WHERE task_id = 'c'")
    assert {(one.state, one.error) for one in states} == {("succeeded", None)}


def test_a_job_that_is_submitted_speaks_as_what_has_submitted_it(
    execute: Execute, database: Database, settings: Settings
) -> None:
    (Path(settings.input_roots[0]) / "a.csv").write_text("n\n1\n")
    with DAG("mine", schedule=None):
        operator = AppendOperator(task_id="submitted", stream="shop/orders", files=["a.csv"])
    with pytest.raises(AirflowException, match="ended without a word"):
        execute(operator)
    [run] = rows(database, "SELECT state FROM job_runs WHERE task_id = 'submitted'")
    assert run.state == "killed", "it was submitted, so nobody says that it failed before"
    assert operator.application_args is not None
    words = operator.application_args[-2:]
    name = json.dumps({"dag_id": "mine", "run_id": "r", "task_id": "t"})
    given = json.dumps({"reader_group": "new", "streams": ["shop/no"]})
    argv = ["--run", name, "--arguments", given]
    for more, says in ((words, "use CreateStreamOperator("), ([], "trigger weir_create_stream")):
        assert main(ACTIONS["create_reader_group"], [*argv, *more]) == 2
        [run] = rows(database, "SELECT error FROM job_runs WHERE task_id = 't'")
        assert says in run.error


def test_a_sensor_speaks_as_a_dag(execute: Execute) -> None:
    with DAG("mine", schedule=None):
        sensor = StreamSensor(task_id="s", stream="shop/no", complete_until="2026-06-01")
    with pytest.raises(AirflowException, match="use CreateStreamOperator"):
        execute(sensor)
