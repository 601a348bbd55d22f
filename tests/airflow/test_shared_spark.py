"""Tasks that share the Spark that the setting `spark` names: in the worker, and submitted only if
they say so."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import weir
from tests.airflow.conftest import connect
from tests.airflow.test_spark_in_worker import dag_file, numbers
from tests.airflow.worker import Worker
from tests.crash.jobs import wait_for, write_config
from tests.local.test_spark_server import Served
from tests.world.streams import rows, unique
from weir.airflow import AppendOperator, AppendQueryOperator, CheckpointOperator
from weir.database.connection import Database
from weir.local.state_folder import StateFolder
from weir.settings import Settings

Execute = Callable[..., Any]


@pytest.fixture
def stream(settings: Settings) -> str:
    """Return the name of a stream of numbers, with a reader group of that name."""
    name = unique("numbers")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n")
        store.create_reader_group(name, [f"test/{name}"])
    (Path(settings.input_roots[0]) / f"{name}.json").write_text('{"n": 1}\n')
    return f"test/{name}"


@pytest.fixture
def away(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """`execute` where the setting names a Spark that is not there, and nothing can be submitted."""
    monkeypatch.setenv("WEIR_SPARK", "sc://localhost:1")
    connect(monkeypatch)
    return execute


def test_a_task_that_needs_spark_says_that_it_is_away_and_tries_again(
    away: Execute, stream: str, database: Database
) -> None:
    name = unique("t")
    with DAG("mine", schedule=None):
        query = AppendQueryOperator(task_id=name, stream=stream, query="SELECT 1 AS n")
    with pytest.raises(AirflowException, match=r"localhost:1.*\[spark_unavailable\]") as raised:
        away(query)
    assert not isinstance(raised.value, AirflowFailException)
    [run] = rows(database, "SELECT state FROM job_runs WHERE task_id = :t", t=name)
    assert run.state == "failed"


@pytest.mark.parametrize("engine", ["spark", "auto", "pyarrow"])
def test_what_needs_no_spark_asks_for_none(away: Execute, stream: str, engine: str) -> None:
    group = stream.partition("/")[2]
    with DAG("mine", schedule=None):
        append = AppendOperator(task_id=f"a{engine}", stream=stream, files=[f"{group}.json"])
        checkpoint = CheckpointOperator(
            task_id=f"c{engine}", reader_group=group, name=engine, engine=engine
        )
    assert away(append)["events"] == 1
    assert away(checkpoint)["checkpoint"] == engine


@pytest.mark.parametrize("given", [{"engine": "submit"}, {"spark_conn_id": "spark_default"}])
def test_a_task_is_submitted_if_it_says_so(
    away: Execute, stream: str, database: Database, given: dict[str, str]
) -> None:
    group, name = stream.partition("/")[2], unique("t")
    with DAG("mine", schedule=None):
        append = AppendOperator(task_id=name, stream=stream, files=[f"{group}.json"], **given)
    with pytest.raises(AirflowException, match="No such file or directory: 'spark-submit'"):
        away(append)
    [run] = rows(database, "SELECT state FROM job_runs WHERE task_id = :t", t=name)
    assert run.state == "killed"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WEIR_SPARK", "SPARK_CONNECT_AUTHENTICATE_TOKEN", "WEIR_CONFIG"):
            patch.delenv(name, raising=False)
        one = Served(StateFolder(tmp_path_factory.mktemp("shared") / "state"))
        one.environ["SPARK_SUBMIT_OPTS"] += " -Dspark.ui.enabled=true"
        one.start()
        yield one
        one.server.stop()


@pytest.fixture
def environ(served: Served, settings: Settings) -> dict[str, str]:
    """The variables of a worker that has no Java."""
    known = ("WEIR_SPARK", "SPARK_CONNECT_AUTHENTICATE_TOKEN")
    return {
        "WEIR_CONFIG": str(write_config(settings)), "JAVA_HOME": "/nowhere",
        **{name: served.environ[name] for name in known},
    }  # fmt: skip


@pytest.mark.jvm
@pytest.mark.server
def test_a_query_is_appended_once_by_the_spark_that_is_there(
    stream: str, settings: Settings, tmp_path: Path, environ: dict[str, str]
) -> None:
    file = dag_file(tmp_path, f"""
        from weir.airflow import AppendQueryOperator
        with DAG("mine", schedule=None) as dag:
            AppendQueryOperator(
                task_id="one", stream="{stream}", parameters={{"n": 3}},
                query="SELECT CAST(id AS INT) AS n FROM range(10) WHERE id >= :n",
            )
        """)  # fmt: skip
    told = Worker(file, "one", 1, 2, **environ).told()
    assert [(one["events"], one["repeated"]) for one in told] == [(7, False), (7, True)]
    assert numbers(settings, stream) == [3, 4, 5, 6, 7, 8, 9]
    assert told[0]["spark_pages"] == told[0]["link"]
    with urlopen(told[0]["link"]) as page:  # noqa: S310  # of the server's own
        assert b"weir" in page.read()


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.parametrize("ends", ["stopped", "timed out"])
def test_what_a_task_runs_ends_with_it(
    stream: str, database: Database, served: Served, tmp_path: Path, environ: dict[str, str],
    ends: str,
) -> None:  # fmt: skip
    file = dag_file(tmp_path, f"""
        from datetime import timedelta
        from weir.airflow import AppendQueryOperator
        with DAG("mine", schedule=None) as dag:
            AppendQueryOperator(
                task_id="endless{ends[:4]}", stream="{stream}",
                query="SELECT count(*) AS n FROM range(100000000000000) WHERE sin(id) = 2",
            )
        """)  # fmt: skip
    name = f"endless{ends[:4]}"
    worker = Worker(
        file, name, 1, **environ, **({"TIMES_OUT": "20"} if ends == "timed out" else {})
    )
    busy = f"SELECT state, report FROM job_runs WHERE task_id = '{name}'"
    wait_for("the task", lambda: worker.poll() is not None or rows(database, busy))
    wait_for("the work", lambda: worker.poll() is not None or served.jvm.cpu_percent(0.5) > 40)
    if ends == "stopped":
        worker.send_signal(signal.SIGTERM)
    [told] = worker.told()
    assert "it was interrupted" in told["error"] or "Timeout" in told["kind"], told
    [run] = rows(database, busy)
    assert run.state == ("killed" if ends == "stopped" else "failed")
    assert run.report["spark_pages"].startswith("http")
    wait_for("nothing to run", lambda: served.jvm.cpu_percent(1.0) < 20, 60)
