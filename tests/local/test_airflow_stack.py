"""What of the Airflow stack can be tried without an Airflow; the rest is in tests/acceptance."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.raises import raises
from weir.local import airflow_environment
from weir.local.airflow_stack import COMPONENTS, AirflowStack
from weir.local.spark_address import GIVEN_BY
from weir.local.spark_server import SparkServer
from weir.local.state_folder import StateFolder

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def stack(tmp_path: Path) -> AirflowStack:
    state = StateFolder(tmp_path / "state")
    return AirflowStack(state, tmp_path / "dags")


def test_stopping_ends_what_has_outlived_its_component(stack: AirflowStack) -> None:
    """A spark-submit of a scheduler that was killed: another session, no parent of ours."""
    mark = stack.environment()["WEIR_STACK_ID"]
    orphan = subprocess.Popen(
        ["sleep", "60"], env=os.environ | {"WEIR_STACK_ID": mark}, start_new_session=True
    )
    other = subprocess.Popen(["sleep", "60"], env=os.environ | {"WEIR_STACK_ID": "another"})
    try:
        stack.stop()
        assert orphan.wait(timeout=300) != 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.airflow
@pytest.mark.release
def test_tables_that_airflow_cannot_make_stop_the_start(stack: AirflowStack) -> None:
    with raises("setup_failed pg_service.conf not found"):
        stack._migrate()  # without a Postgres


def test_what_runs_no_tasks_has_no_token_of_spark(
    stack: AirflowStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEIR_SPARK", GIVEN_BY):
        monkeypatch.delenv(name, raising=False)
    SparkServer(stack._state).want(True)
    has = {one for one in COMPONENTS if {"WEIR_SPARK", GIVEN_BY} & set(stack._environment_of(one))}
    assert has == {"scheduler"}


def test_a_remembered_pid_that_is_another_process_is_left_alone(stack: AirflowStack) -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        stack._remember(pids={"scheduler": other.pid})
        assert stack.running()["scheduler"] is None
        stack.stop()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.airflow
def test_every_variable_is_a_setting_of_airflow_and_no_log_begins_with_a_warning_of_its_own(
    stack: AirflowStack, tmp_path: Path
) -> None:
    (tmp_path / ".airflowignore").write_text("nothing\n")
    (tmp_path / "a_dag.py").touch()
    code = (  # the first two as a task does to find its DAG
        "import json, sys; from airflow.configuration import conf;"
        "from airflow.sdk._shared.module_loading import find_path_from_directory as files;"
        "print(list(files(sys.argv[1], '.airflowignore', 'glob')));"
        "known = conf.configuration_description;"
        "print(json.dumps({name: list(known[name]['options']) for name in known}))"
    )
    environ = stack.environment()  # in a process of its own: Airflow reads it when it is imported
    command = [sys.executable, "-c", code, str(tmp_path)]
    told = subprocess.run(command, env=environ, capture_output=True, text=True)
    *said, last = told.stdout.splitlines()
    assert "a_dag.py" in said[-1]
    assert "deprecated" not in "".join(said) + told.stderr
    known = json.loads(last)
    for name in environ:
        if name.startswith("AIRFLOW__"):
            _, section, key = name.lower().split("__")
            assert key in known[section], name


def test_all_components_get_the_same_secrets_and_no_password(stack: AirflowStack) -> None:
    first, second = stack.environment(), stack.environment()
    assert first == second
    assert len(first["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64
    assert "password" not in first["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]


def test_a_task_that_says_nothing_of_retries_is_retried(stack: AirflowStack) -> None:
    """So a run that `make down` interrupts goes on after the next `make up`."""
    environ = stack.environment()
    assert int(environ["AIRFLOW__CORE__DEFAULT_TASK_RETRIES"]) >= 2
    assert int(environ["AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY"]) <= 30


def test_a_clusters_connection_and_configuration_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path)
    ours = airflow_environment.weir_environment(state)
    assert json.loads(ours["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "local[2]"
    assert "SPARK_CONF_DIR" not in ours
    assert "log4j2.properties" in ours["SPARK_SUBMIT_OPTS"]
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "yarn"}')
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark/conf")
    theirs = airflow_environment.weir_environment(state)
    assert json.loads(theirs["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "yarn"
    assert not {"SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY"} & theirs.keys()


def test_jobs_find_the_library_and_what_python_finds_here_but_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_FUNCTION_PATH", "/functions")  # which jobs read when they start
    monkeypatch.setenv("PYTHONPATH", "/mine::/more")
    monkeypatch.setenv("NO_PROXY", "intranet")
    environ = airflow_environment.weir_environment(StateFolder(tmp_path))
    folders = environ["PYTHONPATH"].split(os.pathsep)
    assert folders == [str(REPOSITORY / "plugins"), "/mine", "/more"]
    assert environ["NO_PROXY"] == environ["no_proxy"] == "intranet,localhost,127.0.0.1"
    assert environ["WEIR_STATE"] == str(tmp_path)
