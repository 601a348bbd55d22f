"""The operator submits a job in every deploy mode, and each try of a task submits its own.

Airflow's operator and hook are the real ones. Only `spark-submit` and the standalone master, which
says how a driver ended, are of this test: they answer as a cluster's would.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException

from tests.airflow.conftest import connect
from tests.crash.jobs import write_config
from tests.raises import raises
from weir.airflow.operators import WeirJobOperator
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end
from weir.settings import Settings

# The driver tells this process, which records it: to import the library takes a second.
SUBMIT = """#!{python} -ISs
import http.client, json, os, sys
calls = "{calls}"
with open(calls, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
print("Submitted application application_1700000000000_0001")
print("driver-20261125000000-0001 is submitted")
print(" pod name: weir-ab12-driver")
print(" Exit code: " + ("0" if os.path.exists(calls + ".ends") else "1"))
if os.path.exists(calls + ".ends"):
    here = http.client.HTTPConnection("127.0.0.1", int(os.environ["REST_PORT"]))
    here.request("POST", "/", sys.argv[sys.argv.index("--run") + 1])
    assert here.getresponse().status == 200
elif "cluster" not in sys.argv:
    sys.exit(1)
"""
MODES = {
    "local": ("local[2]", "client"),
    "standalone client": ("spark://127.0.0.1:7077", "client"),
    "standalone cluster": ("spark://127.0.0.1:7077", "cluster"),
    "yarn client": ("yarn", "client"),
    "yarn cluster": ("yarn", "cluster"),
    "kubernetes client": ("k8s://https://127.0.0.1:6443", "client"),
    "kubernetes cluster": ("k8s://https://127.0.0.1:6443", "cluster"),
}
Try = Callable[[int], Any]


class Remembered(dict[str, Any]):
    """What Airflow keeps between the tries of a task."""

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self[key] = value


@pytest.fixture
def calls(
    database: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Yield where `spark-submit` writes down its calls; it succeeds if there is a file `.ends`."""
    calls = tmp_path / "calls"
    submit = tmp_path / "spark-submit"
    submit.write_text(SUBMIT.format(python=sys.executable, calls=calls))
    submit.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    # The client of Kubernetes need not be installed where nothing asks it.
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)

    class Master(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state = "FINISHED" if calls.with_name("calls.ends").exists() else "FAILED"
            lines = f'"submissionId" : "driver-1",\n"driverState" : "{state}"\n'
            self.send_response(200)
            self.end_headers()
            self.wfile.write(lines.encode())

        def do_POST(self) -> None:
            told = self.rfile.read(int(self.headers["Content-Length"]))
            run = RunId(**json.loads(told))
            database.transaction(lambda c: record_end(c, run, "succeeded", report={"done": 1}))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Master) as master:
        monkeypatch.setenv("REST_PORT", str(master.server_port))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        Thread(target=master.serve_forever, args=[0.05], daemon=True).start()
        yield calls
        master.shutdown()


def tries(mode: str, monkeypatch: pytest.MonkeyPatch, **given: Any) -> Try:
    """Return `try_(number)`, which executes a task of a DAG as Airflow does."""
    host, deploy_mode = MODES[mode]
    connect(monkeypatch, host, deploy_mode, **{"rest-port": os.environ["REST_PORT"]})
    remembered = Remembered()

    def try_(number: int) -> Any:
        with DAG("mine", schedule=None, default_args=given):
            task = WeirJobOperator(
                task_id="t", job="retention", arguments={}, status_poll_interval=0
            )
        ti = SimpleNamespace(
            dag_id="mine", run_id=mode, task_id="t", map_index=-1, try_number=number,
            stats_tags={},
        )  # fmt: skip
        context: Any = {"ti": ti, "task_state_store": remembered}
        return task.execute(context)

    return try_


@pytest.mark.parametrize("given", [{}, {"durable": True}])
@pytest.mark.parametrize("mode", MODES)
def test_each_try_submits_a_job_of_its_own_in_every_deploy_mode(
    mode: str, given: dict[str, Any], calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try's driver ended well or not: what counts is what its run has recorded."""
    try_ = tries(mode, monkeypatch, **given)
    with pytest.raises(AirflowException):
        try_(1)
    calls.with_name("calls.ends").touch()
    for number in (2, 3):
        assert try_(number) == {"done": 1}
    submitted = [json.loads(line) for line in calls.read_text().splitlines()]
    runs = [json.loads(one[one.index("--run") + 1])["try_number"] for one in submitted]
    assert runs == [1, 2, 3]


@pytest.mark.parametrize("mode", ["local", "kubernetes cluster"])
def test_a_job_that_has_recorded_its_success_is_done_whatever_spark_submit_says(
    mode: str, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = calls.with_name("spark-submit")
    submit.write_text(submit.read_text() + "\nsys.exit(1)\n")
    calls.with_name("calls.ends").touch()
    assert tries(mode, monkeypatch)(1) == {"done": 1}


def test_a_task_that_is_to_reconnect_is_refused() -> None:
    with raises("arguments_conflict durable=True"), DAG("mine", schedule=None):
        WeirJobOperator(task_id="t", job="retention", arguments={}, durable=True)
