"""Tasks of one's own: what a function returns is appended once; a function of the DAG file is
called with what a group has not read."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import weir
from tests.crash.jobs import write_config
from tests.world.streams import rows, unique
from weir.airflow import stream_asset, weir_append, weir_process
from weir.database.connection import Database
from weir.settings import Settings, as_environment, load

Execute = Callable[..., Any]


@pytest.fixture
def stream(settings: Settings, database: Database) -> str:
    """Return the name of a stream of numbers, which a group of the same name reads."""
    name = f"test/{unique('numbers')}"
    with weir.open(settings=settings) as store:
        store.create_stream(name, "n")
        store.create_reader_group(name.partition("/")[2], [name])
    return name


def numbers(settings: Settings, stream: str) -> list[int]:
    with weir.open(settings=settings) as store:
        found = store.read(stream)
    return sorted(found["n"].to_pylist()) if found.num_rows else []


def test_airflow_has_the_decorators_under_the_names_of_the_provider() -> None:
    assert task.weir_append is weir_append
    assert task.weir_process is weir_process


@pytest.mark.parametrize(
    "returned", [[{"n": 1}, {"n": 2}], pa.table({"n": [1, 2]}), "generator"], ids=type
)
def test_what_a_task_returns_is_appended_once_for_all_its_tries(
    returned: Any, execute: Execute, settings: Settings, stream: str, database: Database
) -> None:
    def made() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        yield {"n": 2}

    with DAG("mine", schedule=None):

        @task.weir_append(stream=stream)  # type: ignore[untyped-decorator]
        def counted(run_id: Any = None) -> Any:
            assert run_id == "r", "the context of Airflow"
            return made() if returned == "generator" else returned

        operator = counted().operator
    assert operator.outlets == [stream_asset(stream)]
    report = execute(operator)
    assert (report["events"], report["repeated"]) == (2, False)
    again = execute(operator, 2)
    assert (again["events"], again["repeated"]) == (2, True), "retried or cleared"
    assert numbers(settings, stream) == [1, 2]
    json.dumps(report)
    states = rows(database, "SELECT state FROM job_runs WHERE job = 'append' "
                  "AND report ->> 'stream' = :s", s=stream)  # fmt: skip
    assert [one.state for one in states] == ["succeeded"] * 2


def test_a_task_without_rows_states_what_is_complete(
    execute: Execute, settings: Settings, database: Database
) -> None:
    name = f"test/{unique('hours')}"
    with weir.open(settings=settings) as store:
        store.create_stream(name, "n", event_time="at")
    with DAG("mine", schedule=None):

        @task.weir_append(stream=name, complete_until="2026-06-01T10:00:00Z")  # type: ignore[untyped-decorator]
        def none() -> list[Any]:
            return []

        operator = none().operator
    assert execute(operator)["events"] == 0
    [found] = rows(database, "SELECT complete_until FROM completeness WHERE stream = :s",
                   s=name)  # fmt: skip
    assert found.complete_until.isoformat() == "2026-06-01T10:00:00+00:00"


def test_an_index_that_a_later_run_does_not_map_holds_nothing_back(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    name = f"test/{unique('mapped')}"
    with weir.open(settings=settings) as store:
        store.create_stream(name, "n", event_time="at")
        for other in ("mine/many/x", "mine/many2/7", "mine/many/3/4"):
            store.append(
                name, [{"n": 0, "at": datetime(2026, 6, 1, tzinfo=UTC)}], writer_id=other,
                batch_id="b", complete_until="2026-06-01T01:00:00Z",
            )  # fmt: skip

    def execute(hour: int, index: int, count: int, number: int = 1) -> dict[str, Any]:
        def counted(**which: Any) -> int:
            assert which == {"dag_id": "mine", "task_ids": ["many"], "run_ids": [f"{hour}h"]}
            return count

        with DAG("mine", schedule=None):

            @weir_append(stream=name, complete_until="{{ until }}")  # type: ignore[untyped-decorator]
            def many(number: int) -> list[dict[str, Any]]:
                at = datetime(2026, 6, 1, hour - 1, 30, tzinfo=UTC)
                return [{"n": number, "at": at}] * bool(number)

            mapped = many.expand(number=[number] * count).operator
        operator = mapped.unmap({"op_kwargs": {"number": number}})
        ti = SimpleNamespace(
            dag_id="mine", run_id=f"{hour}h", task_id="many", map_index=index, try_number=1,
            stats_tags={}, get_task_states=lambda **_: {}, get_ti_count=counted,
        )  # fmt: skip
        context = {"ti": ti, "until": f"2026-06-01T{hour:02}:00:00Z"}
        operator.render_template_fields(context)
        report: dict[str, Any] = operator.execute(context)
        return report

    def stated() -> dict[str, int]:
        found = rows(database, "SELECT writer_id, complete_until AS until FROM stream_writer")
        return {
            one.writer_id: datetime.fromtimestamp(one.until / 1e6, UTC).hour
            for one in found
            if one.writer_id.startswith("mine/many")
        }

    others = {"mine/many/x": 1, "mine/many2/7": 1, "mine/many/3/4": 1}
    for index in range(12):
        execute(2, index, 12)
    assert stated() == others | {f"mine/many/{index}": 2 for index in range(12)}
    execute(4, 1, 2)
    assert stated() == others | {f"mine/many/{i}": 4 if i == 1 else 2 for i in range(12)}
    execute(4, 0, 2)
    assert stated() == others | {f"mine/many/{index}": 4 for index in range(12)}
    assert execute(4, 0, 2)["repeated"], "cleared"
    execute(3, 0, 1, number=0)  # a run that is late takes nothing back
    assert stated() == others | {f"mine/many/{index}": 4 for index in range(12)}
    execute(5, 0, 1, number=0)  # without rows
    assert stated() == others | {f"mine/many/{index}": 5 for index in range(12)}
    assert execute(3, 11, 12)["late"] == 0, "the other writers still hold the stream back"
    with weir.open(settings=settings) as store:
        for other in others:
            store.append(
                name, [{"n": 0, "at": datetime(2026, 6, 1, 7, tzinfo=UTC)}], writer_id=other,
                batch_id="c", complete_until="2026-06-01T07:00:00Z",
            )  # fmt: skip
    again = execute(4, 11, 12)
    assert (again["events"], again["late"]) == (1, 1), "an index that comes back appends"
    [found] = rows(database, "SELECT complete_until FROM completeness WHERE stream = :s",
                   s=name)  # fmt: skip
    assert found.complete_until.isoformat() == "2026-06-01T05:00:00+00:00"


def test_rows_that_do_not_fit_fail_the_task_for_good_and_are_recorded(
    execute: Execute, stream: str, database: Database
) -> None:
    with DAG("mine", schedule=None):

        @task.weir_append(stream=stream, task_id=unique("wrong"))  # type: ignore[untyped-decorator]
        def wrong() -> list[Any]:
            return [{"n": 1}, {"n": None}]

        operator = wrong().operator
    with pytest.raises(AirflowFailException, match="bad_rows"):
        execute(operator)
    [run] = rows(database, "SELECT state, retryable FROM weir_internal.job_run WHERE task_id = :t",
                 t=operator.task_id)  # fmt: skip
    assert (run.state, run.retryable) == ("failed", False)


def test_a_function_of_the_dag_file_is_called_with_what_its_group_has_not_read(
    execute: Execute, settings: Settings, stream: str, database: Database
) -> None:
    group = stream.partition("/")[2]
    with weir.open(settings=settings) as store:
        store.append(stream, [{"n": 1}, {"n": 5}])
    failing = [True]
    with DAG("mine", schedule=None):

        @task.weir_process(reader_group=group, outputs=[f"parquet:{group}"])  # type: ignore[untyped-decorator]
        def large(events: pa.Table, at_least: int) -> pa.Table:
            if failing:
                raise ValueError("not now")
            return events.filter(pc.greater_equal(events["n"], at_least)).select(["n"])

        operator = large(at_least=3).operator
        with pytest.raises(TypeError, match="at_least"):
            large()
    with pytest.raises(AirflowException, match="not now"):
        execute(operator)
    failing.clear()
    assert execute(operator, 2)["events"] == 2
    assert execute(operator, 3)["events"] == 0
    found = pq.read_table(Path(settings.output_roots[0]) / group, columns=["n"])
    assert found["n"].to_pylist() == [5]
    [batch] = rows(database, "SELECT function FROM batches WHERE reader_group = :g "
                   "AND state = 'committed'", g=group)  # fmt: skip
    assert batch.function.endswith("large")


def test_an_installation_may_refuse_functions_of_dag_files(
    execute: Execute, settings: Settings, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_FUNCTIONS_OF_DAGS", "false")
    with DAG("mine", schedule=None):

        @weir_process(reader_group=stream.partition("/")[2], outputs=["parquet:x"])  # type: ignore[untyped-decorator]
        def never(events: pa.Table) -> pa.Table:
            raise NotImplementedError

        operator = never().operator
    with pytest.raises(AirflowFailException, match="function_not_allowed"):
        execute(operator)


def test_settings_are_the_same_in_the_environment_of_a_job(settings: Settings) -> None:
    some = replace(settings, functions_of_dags=False, function_packages=("a", "b"), batch_events=7)
    assert load({"WEIR_CONFIG": str(write_config(settings)), **as_environment(some)}) == some
