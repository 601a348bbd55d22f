"""Sessions of Spark in a worker: what a query gives is appended once, and a function of a DAG file
is called with DataFrames, exactly once over a kill."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

import weir
from tests.airflow.conftest import connect
from tests.airflow.worker import Worker
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.world.streams import rows, unique
from weir.airflow import AppendQueryOperator, stream_asset
from weir.database.connection import Database
from weir.settings import Settings

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def stream(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a stream of numbers, and let workers find it, and a Spark."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    connect(monkeypatch)
    name = unique("numbers")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n")
        store.create_reader_group(name, [f"test/{name}"])
    return f"test/{name}"


def numbers(settings: Settings, stream: str) -> list[int]:
    with weir.open(settings=settings) as store:
        found = store.read(stream)
    return sorted(found["n"].to_pylist()) if found.num_rows else []


def dag_file(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text("from airflow.sdk import DAG, task\n" + dedent(text))
    return path


def test_a_query_is_appended_once_over_a_retry(
    stream: str, settings: Settings, tmp_path: Path
) -> None:
    file = dag_file(tmp_path, f"""
        from weir.airflow import AppendQueryOperator
        with DAG("mine", schedule=None) as dag:
            AppendQueryOperator(
                task_id="one", stream="{stream}", parameters={{"n": "3 OR true"}},
                query="SELECT 1 AS n UNION ALL SELECT 2 WHERE 2 >= try_cast(:n AS long)",
            )
        """)  # fmt: skip
    told = Worker(file, "one", 1, 2).told()
    assert [(one["events"], one["repeated"]) for one in told] == [(1, False), (1, True)]
    assert numbers(settings, stream) == [1], "a parameter became code"


@pytest.mark.release
def test_what_a_query_gives_is_appended_once_over_retries_clears_and_maps(
    stream: str, settings: Settings, database: Database, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"n": [1, 2, 3, 4]}), tmp_path / "four.parquet")
    file = dag_file(tmp_path, f'''
        from weir.airflow import AppendQueryOperator
        with DAG("mine", schedule=None, params={{"least": "3 OR true"}}) as dag:
            AppendQueryOperator(
                task_id="one", stream="{stream}", parameters={{"l": "{{{{ params.least }}}}"}},
                query="SELECT n FROM parquet.`{tmp_path}/four.parquet` "
                "WHERE n >= try_cast(:l AS long)",
            )
            AppendQueryOperator.partial(
                task_id="each", stream="{stream}", conf={{"spark.mine": "set"}},
                query="SELECT n FROM parquet.`{tmp_path}/four.parquet` WHERE n = :n",
            ).expand(parameters=[{{"n": 1}}, {{"n": 4}}])
            AppendQueryOperator(task_id="wrong", stream="{stream}", query="SELECT no FROM range(1)")
        ''')  # fmt: skip
    [injected] = Worker(file, "one", 1).told()
    assert injected["events"] == 0, "a parameter became code"
    told = Worker(file, "each", 1, 2).told()
    assert [(one["events"], one["repeated"]) for one in told] == [
        (1, False), (1, False), (1, True), (1, True),
    ]  # fmt: skip
    (tmp_path / "four.parquet").unlink()
    assert [one["repeated"] for one in Worker(file, "each", 3).told()] == [True, True], "cleared"
    assert numbers(settings, stream) == [1, 4]
    states = rows(database, "SELECT state, arguments ->> 'query' AS query FROM job_runs "
                  "WHERE job = 'append' AND task_id = 'each'")  # fmt: skip
    assert {one.state for one in states} == {"succeeded"}
    assert "WHERE n = :n" in states[0].query
    [wrong] = Worker(file, "wrong", 1).told()
    assert wrong["kind"] == "AirflowFailException"
    assert wrong["error"].startswith("Spark refuses the query ([UNRESOLVED_COLUMN")
    assert wrong["error"].endswith("[expression_invalid]")
    assert "\n" not in wrong["error"]
    assert numbers(settings, stream) == [1, 4]


def test_a_query_is_no_template_shows_its_outlet_and_runs_where_the_worker_is(
    stream: str, execute: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with DAG("mine", schedule=None):
        for query in ("SELECT {{ params.x }}", "{% if x %}SELECT 1{% endif %}"):
            with raises("expression_invalid parameters"):
                AppendQueryOperator(task_id="a", stream=stream, query=query)
        one = AppendQueryOperator(task_id="b", stream=stream, query="SELECT 1 AS n")
    assert one.outlets == [stream_asset(stream)]
    assert "query" not in one.template_fields
    connect(monkeypatch, mode="cluster")
    with pytest.raises(AirflowFailException, match="the code of this DAG file; use client"):
        execute(one)


@pytest.mark.release
def test_a_function_of_a_dag_file_gets_dataframes_exactly_once_over_a_kill(
    stream: str, settings: Settings, database: Database, tmp_path: Path
) -> None:
    group = stream.partition("/")[2]
    with weir.open(settings=settings) as store:
        store.append(stream, [{"n": n} for n in range(10)])
    file = dag_file(tmp_path, f"""
        import os, time
        from pathlib import Path
        from pyspark.sql import functions as F
        from weir.airflow import weir_process

        def doubled(n):
            return 2 * n

        with DAG("mine", schedule=None) as dag:
            @weir_process(
                reader_group="{group}", outputs=["parquet:{group}"], engine="spark",
                conf={{"spark.app.name": "of the connection"}},
            )
            def large(events, at_least):
                if os.environ.get("HANGS"):
                    Path("{tmp_path}/reached").touch()
                    time.sleep(300)
                twice = F.udf(doubled, "long")  # executors get the module by value
                return events.where(F.col("n") >= at_least).select("n", twice("n").alias("twice"))
            large(at_least=7)
        """)  # fmt: skip
    first = Worker(file, "large", 1, HANGS="1", WEIR_READER_LEASE="5")
    until = time.monotonic() + 200
    while not (tmp_path / "reached").exists():
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < until
        time.sleep(0.2)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    second, third = Worker(file, "large", 2, 3, WEIR_READER_LEASE="5").told()
    assert (second["events"], third["events"]) == (10, 0)
    found = pq.read_table(Path(settings.output_roots[0]) / group, columns=["n", "twice"])
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(7, 14), (8, 16), (9, 18)]
    [batch] = rows(database, "SELECT attempt, state FROM batches WHERE reader_group = :g",
                   g=group)  # fmt: skip
    assert (batch.state, batch.attempt) == ("committed", 2)
