"""An operator for each action: what it takes, where it runs, and that a task does it once."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, Asset, BaseOperator, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import weir
import weir.airflow
from tests.raises import raises
from tests.world.streams import Lane, rows, unique
from weir.airflow import (
    AppendOperator,
    CheckpointOperator,
    CreateStreamOperator,
    ProcessOperator,
    ScaleOperator,
    operator_name,
    stream_asset,
)
from weir.arrow import ingest
from weir.database.connection import Database
from weir.operations.jobs import ACTIONS, FORMS
from weir.settings import Settings

OPERATORS = {name: getattr(weir.airflow, operator_name(name)) for name in ACTIONS}


def test_every_action_has_an_operator_with_its_arguments() -> None:
    own = {"engine", "conn_id", "spark_conn_id", "approval"}
    of_annexes = {"AlertsOperator", "partition", "stream_days", "stream_hours"}
    of_annexes |= {"GroupReadDeadline", "StreamCompleteDeadline"}
    offered = {*weir.airflow._OFFERED, *of_annexes}
    assert set(dir(weir.airflow)) == {*map(operator_name, ACTIONS), *offered}
    assert all(callable(getattr(weir.airflow, name)) for name in offered)
    taken = set(inspect.signature(BaseOperator.__init__).parameters) - {"self", "kwargs"}
    for name, operator in OPERATORS.items():
        known = inspect.signature(operator).parameters
        renamed = {"retries": "batch_retries", "owner": "owner_role"}
        form = {renamed.get(one, one) for one in FORMS[name].__dataclass_fields__}
        assert set(known) - own - {"kwargs"} == form - own
        assert not form & taken, "Airflow would take it for its own"
        assert operator.__doc__.startswith(inspect.cleandoc(str(FORMS[name].__doc__)))
        assert getattr(import_module(operator.__module__), operator.__name__) is operator


def test_what_is_missing_unknown_or_wrong_is_told_when_the_file_is_read() -> None:
    untyped: Any = AppendOperator  # a type checker tells the same, which is not what is tried
    with DAG("mine", schedule=None, default_args={"stream": "shop/orders"}):
        with pytest.raises(TypeError, match="missing keyword argument 'files'"):
            untyped(task_id="a")
        with pytest.raises(TypeError, match="fils"):
            untyped(task_id="b", files=["a"], fils=["a"])
        with raises("argument_invalid files"):
            untyped(task_id="c", files=[])
        with raises("argument_invalid engine"):
            CheckpointOperator(task_id="d", reader_group="g", name="n", engine="java")
        later = untyped(task_id="e", files=["{{ params.file }}"], separator="")
    assert later.arguments == {"stream": "shop/orders", "files": ["{{ params.file }}"],
                               "separator": ""}  # fmt: skip


def test_a_task_that_appends_shows_its_stream_as_outlet_and_makes_no_event_of_it(
    execute: Callable[..., Any], database: Database
) -> None:
    asset, other = stream_asset("shop/orders"), Asset("mine")
    with DAG("mine", schedule=None):
        one = AppendOperator(task_id="a", stream="shop/orders", files=["a"], inlets=[asset])
        two = AppendOperator(task_id="b", stream="{{ x }}", files=["a"], outlets=asset)
        three = ProcessOperator(task_id="c", reader_group="g")
    assert (one.outlets, one.inlets) == ([asset], [asset])
    assert two.outlets == [asset]
    assert three.outlets == []
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    with DAG("mine", schedule=None):
        done = ScaleOperator(
            task_id="s", stream=str(lane.name), segments=["0.0"], parts=2, engine="auto",
            outlets=[stream_asset(str(lane.name)), other],
        )  # fmt: skip
    execute(done)
    assert done.outlets == [other], "the triggerer announces streams"


def test_what_another_task_returns_is_an_argument() -> None:
    @task
    def found() -> list[str]:
        raise NotImplementedError

    with DAG("mine", schedule=None):
        files = found()
        appending = AppendOperator(task_id="a", stream="shop/orders", files=files)
        mapped = AppendOperator.partial(task_id="b", stream="shop/orders").expand(files=[["a"]])
    assert appending.upstream_task_ids == {"found"}
    one = mapped.unmap({"files": ["a"]})
    assert (one.arguments, one.outlets) == (
        {"stream": "shop/orders", "files": ["a"]}, [stream_asset("shop/orders")],
    )  # fmt: skip


def test_an_action_that_needs_no_spark_runs_in_the_worker_once_for_all_tries_of_a_task(
    execute: Callable[..., Any], database: Database
) -> None:
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    with DAG("mine", schedule=None):
        scaled = ScaleOperator(
            task_id="s", stream=str(lane.name), segments=["0.0"], parts=3, reason="{{ run_id }}",
            engine="auto",
        )  # fmt: skip
    first = execute(scaled)
    assert execute(scaled, try_number=2) == first, "retried, or cleared"
    assert len(lane.active()) == 4
    [run, *_] = lane.rows("SELECT state, job, try_number FROM job_runs WHERE dag_id = 'mine' "
                          "AND task_id = 's' ORDER BY try_number")  # fmt: skip
    assert (run.state, run.job) == ("succeeded", "scale_stream")
    reasons = lane.rows(
        "SELECT reason FROM epoch_transition WHERE stream = :name", name=str(lane.name)
    )
    assert "r" in {one.reason for one in reasons}


def test_an_error_says_in_words_of_a_program_what_to_pass(
    execute: Callable[..., Any],
    database: Database,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest, "MOST_BYTES", 5)  # of files that one process reads
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    (Path(settings.input_roots[0]) / "rows.json").write_text('{"key": "a"}\n')
    with DAG("mine", schedule=None):
        lines = AppendOperator(
            task_id="t", stream=str(lane.name), files=["rows.json"], engine="pyarrow"
        )
        twice = CreateStreamOperator(
            task_id="u", stream=str(lane.name), routing_key="key", engine="auto"
        )
    with pytest.raises(AirflowFailException, match="pass engine='spark'"):
        execute(lines)
    with pytest.raises(AirflowFailException, match="stream_exists"):
        execute(twice)
    failed = lane.rows("SELECT error FROM job_runs WHERE dag_id = 'mine' AND task_id = 'u'")
    assert "exists" in failed[-1].error


def doubled(events: pa.Table) -> pa.Table:
    """Return the events with twice their number."""
    twice = pa.compute.multiply(events["n"], 2)
    return pa.table({"n": twice})


def test_a_consumer_on_pyarrow_reads_in_the_worker_what_it_has_not_read(
    execute: Callable[..., Any], database: Database, settings: Settings
) -> None:
    name = unique("stream")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n")
        store.append(f"test/{name}", [{"n": 1}, {"n": 2}])
        store.create_reader_group(name, [f"test/{name}"])
        with DAG("mine", schedule=None):
            process = ProcessOperator(
                task_id="p", reader_group=name, function=f"{__name__}:doubled",
                outputs=[f"parquet:{name}"], engine="pyarrow",
            )  # fmt: skip
        assert execute(process)["events"] == 2
        store.append(f"test/{name}", [{"n": 3}])
        assert execute(process, 2)["events"] == 1
        assert execute(process, 3)["events"] == 0
    found = pq.read_table(Path(settings.output_roots[0]) / name, columns=["n"])
    assert sorted(found["n"].to_pylist()) == [2, 4, 6]


STOP: list[Callable[[], None]] = []


def stopped(events: pa.Table) -> pa.Table:
    """Return the events; Airflow stops the task meanwhile, if there is anything in STOP."""
    if STOP:
        STOP.pop()()
    return events.select(["n"])


def test_a_task_that_is_stopped_in_the_worker_is_recorded_and_its_next_try_goes_on(
    execute: Callable[..., Any], database: Database, settings: Settings
) -> None:
    name = unique("stream")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n")
        store.append(f"test/{name}", [{"n": 1}])
        store.create_reader_group(name, [f"test/{name}"])
    with DAG("mine", schedule=None):
        process = ProcessOperator(
            task_id=name, reader_group=name, function=f"{__name__}:stopped",
            outputs=[f"parquet:{name}"], engine="pyarrow",
        )  # fmt: skip
    STOP.append(process.on_kill)
    with pytest.raises(AirflowException, match="it was interrupted"):
        execute(process)
    [run] = rows(database, "SELECT state FROM job_runs WHERE task_id = :t", t=name)
    assert run.state == "killed"
    assert execute(process, 2)["events"] == 1
