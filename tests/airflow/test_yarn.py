"""Weir's operator submits to a real YARN, in both deploy modes: a second driver is harmless."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException

import weir
from tests.airflow.conftest import connect
from tests.crash.jobs import ROOT, wait_for, write_config
from tests.spark.yarn import Yarn, yarn
from weir.airflow.operators import WeirJobOperator
from weir.settings import Settings

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]
Execute = Callable[[int], Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with yarn(tmp_path_factory.mktemp("yarn")) as found:
        yield found


@pytest.fixture(params=["client", "cluster"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made() -> list[WeirJobOperator]:
    """The operators that were executed: each try has its own, as in a worker."""
    return []


@pytest.fixture
def operator(
    mode: str, cluster: Yarn, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], WeirJobOperator]:
    """Return what makes an operator that appends a file in a cluster of which its environment has
    the settings, as an Airflow beside one has."""
    config = write_config(settings)
    python = f"{ROOT / 'plugins'}"
    monkeypatch.setenv("WEIR_CONFIG", str(config))
    monkeypatch.setenv("PYTHONPATH", python)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    connect(monkeypatch, "yarn", mode)
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "n")
    (Path(settings.input_roots[0]) / "more.csv").write_text("n\n1\n2\n")
    of_the_driver = {"WEIR_CONFIG": str(config), "PYTHONPATH": python,
                     "PYSPARK_PYTHON": sys.executable}  # fmt: skip

    def operator() -> WeirJobOperator:
        with DAG("d"):
            return WeirJobOperator(
                task_id="t",
                job="ingest",
                arguments={"stream": "shop/orders", "files": ["more.csv"]},
                conf={
                    "spark.yarn.stagingDir": str(tmp_path / "staging"),
                    "spark.executor.instances": "1",
                    "spark.executor.memory": "512m",
                    "spark.driver.memory": "512m",
                    **{f"spark.yarn.appMasterEnv.{k}": v for k, v in of_the_driver.items()},
                    **{f"spark.executorEnv.{k}": v for k, v in of_the_driver.items()},
                },
            )

    return operator


@pytest.fixture
def execute(operator: Callable[[], WeirJobOperator], made: list[WeirJobOperator]) -> Execute:
    def execute(number: int) -> Any:
        ti = SimpleNamespace(
            dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=number, stats_tags={},
            get_task_states=lambda **_: {},
        )  # fmt: skip
        made.append(operator())
        context: Any = {"ti": ti, "run_id": "r", "params": {}}
        return made[-1].execute(context)

    return execute


def test_a_job_runs_and_the_next_try_repeats_nothing(
    mode: str, execute: Execute, settings: Settings, cluster: Yarn
) -> None:
    before = len(cluster.applications())
    try:
        reports = [execute(number) for number in (1, 2)]
    except AirflowException:
        print(cluster.said())
        raise
    assert [one["events"] for one in reports] == [2, 2]
    assert [one["repeated"] for one in reports] == [False, True]
    # The second try needs no Spark: its driver asks YARN for nothing, or is one that YARN started,
    # and calls failed then.
    assert len(cluster.applications()) - before == {"client": 1, "cluster": 2}[mode]
    with weir.open(settings=settings) as store:
        assert store.count("shop/orders") == 2


@pytest.mark.parametrize("mode", ["cluster"])  # else a driver ends with its worker
def test_a_driver_that_outlives_its_task_and_that_of_the_next_try_append_once(
    execute: Execute, made: list[WeirJobOperator], settings: Settings, cluster: Yarn
) -> None:
    """In the mode cluster, a driver goes on when its worker is lost, and Airflow starts the next
    try beside it."""

    def lost() -> None:
        with contextlib.suppress(AirflowException):
            execute(1)

    first = threading.Thread(target=lost)
    before = len(cluster.applications())
    first.start()
    wait_for("an application", lambda: len(cluster.applications()) > before, 120)
    hook: Any = made[0]._hook
    hook._submit_sp.kill()  # what was submitted lives on
    first.join()
    report = execute(2)
    assert report["events"] == 2
    wait_for(
        "the ends", lambda: set(cluster.applications().values()) <= {"FINISHED", "FAILED"}, 120
    )
    assert len(cluster.applications()) == before + 2
    with weir.open(settings=settings) as store:
        assert store.count("shop/orders") == 2
