"""The REST client, against a server that says what Airflow would say."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.raises import raises
from weir.local import airflow_stack
from weir.local.airflow_api import AirflowApi


class FakeAirflow(ThreadingHTTPServer):
    """Answers from a table of (method, path), and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {
            ("POST", "/auth/token"): (201, {"access_token": "secret"})
        }
        self.asked: list[tuple[str, str, Any, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: FakeAirflow

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = json.loads(body) if body else None
        token = self.headers.get("Authorization")
        self.server.asked.append((self.command, self.path, said, token))
        code, answer = self.server.answers.get((self.command, self.path), (404, {"detail": "?"}))
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def airflow() -> Iterator[FakeAirflow]:
    server = FakeAirflow()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def api(airflow: FakeAirflow) -> AirflowApi:
    return AirflowApi(f"http://127.0.0.1:{airflow.server_port}", "admin", "password")


def test_a_run_is_triggered_once_per_id(airflow: FakeAirflow, api: AirflowApi) -> None:
    airflow.answers["POST", "/api/v2/dags/d/dagRuns"] = (200, {"dag_run_id": "mine"})
    assert api.trigger("d", {"a": 1}, "mine") == "mine"
    body = {"logical_date": None, "conf": {"a": 1}, "dag_run_id": "mine"}
    assert airflow.asked[-1] == ("POST", "/api/v2/dags/d/dagRuns", body, "Bearer secret")
    airflow.answers["POST", "/api/v2/dags/d/dagRuns"] = (409, {"detail": "exists"})
    assert api.trigger("d", {"a": 1}, "mine") == "mine"
    with raises("airflow_conflict"):
        api.trigger("d", {"a": 1})


def test_a_dag_that_airflow_does_not_find_is_named(airflow: FakeAirflow, api: AirflowApi) -> None:
    airflow.answers["GET", "/api/v2/importErrors"] = (200, {"import_errors": []})
    with raises("airflow_not_found DAG weir_nothing"):
        api.trigger("weir_nothing", patience=0)


def test_a_refused_form_says_why(airflow: FakeAirflow, api: AirflowApi) -> None:
    airflow.answers["POST", "/api/v2/dags/d/dagRuns"] = (400, {"detail": "'x' is not an integer"})
    with raises("airflow_refused 'x'"):
        api.trigger("d", {"n": "x"})


def test_a_failed_run_comes_with_the_end_of_its_tasks_log(
    airflow: FakeAirflow, api: AirflowApi, caplog: pytest.LogCaptureFixture
) -> None:
    run = "/api/v2/dags/d/dagRuns/a%2Bb"
    airflow.answers["GET", run] = (200, {"state": "failed"})
    good = {"task_id": "t", "map_index": -1, "state": "success", "try_number": 1}
    bad = {"task_id": "t", "map_index": 3, "state": "failed", "try_number": 2}
    airflow.answers["GET", f"{run}/taskInstances?limit=100&offset=0"] = (
        200,
        {"task_instances": [good, bad], "total_entries": 2},
    )
    frame = {"filename": "/job.py", "lineno": 7, "name": "run"}
    lines = [
        {"event": "::group::Log"},
        {"event": "first"},
        {
            "event": "Task failed",
            "error_detail": [{"exc_type": "ValueError", "exc_value": "no", "frames": [frame]}],
        },
    ]
    path = f"{run}/taskInstances/t/logs/2?map_index=3&full_content=true"
    airflow.answers["GET", path] = (200, {"content": lines})
    assert api.wait("d", "a+b") == "failed"
    told = "t[3]:\nfirst\nTask failed\n  /job.py:7 in run\nValueError: no"
    assert told in "\n".join(caplog.messages)


def test_runs_that_are_under_way_are_named(airflow: FakeAirflow, api: AirflowApi) -> None:
    path = "/api/v2/dags/~/dagRuns?state=running&limit=100&order_by=start_date"
    runs = [{"dag_id": "shop", "dag_run_id": "mine"}, {"dag_id": "d", "dag_run_id": "other"}]
    airflow.answers["GET", path] = (200, {"dag_runs": runs})
    assert api.under_way() == ["shop mine", "d other"]


def test_a_run_that_takes_too_long_is_named_with_what_its_tasks_do(
    airflow: FakeAirflow, api: AirflowApi
) -> None:
    airflow.answers["GET", "/api/v2/dags/d/dagRuns/r"] = (200, {"state": "running"})
    done = {"task_id": "done", "map_index": -1, "state": "success", "try_number": 1}
    asks = {"task_id": "asks", "map_index": -1, "state": "awaiting_input", "try_number": 2}
    later = {"task_id": "later", "map_index": 0, "state": None, "try_number": 0}
    airflow.answers["GET", "/api/v2/dags/d/dagRuns/r/taskInstances?limit=100&offset=0"] = (
        200,
        {"task_instances": [done, asks, later], "total_entries": 3},
    )
    with raises("run_not_over r d running (asks: awaiting_input, try 2, later[0]: None, try 0)"):
        api.wait("d", "r", timeout=0)


def test_all_pages_of_tasks_are_read(airflow: FakeAirflow, api: AirflowApi) -> None:
    path = "/api/v2/dags/d/dagRuns/r/taskInstances?limit=100&offset="
    airflow.answers["GET", f"{path}0"] = (200, {"task_instances": [{}] * 100, "total_entries": 130})
    airflow.answers["GET", f"{path}100"] = (
        200,
        {"task_instances": [{}] * 30, "total_entries": 130},
    )
    assert len(api.tasks("d", "r")) == 130


def test_nobody_there_and_not_found_are_told_apart(airflow: FakeAirflow, api: AirflowApi) -> None:
    with raises("airflow_not_found 404"):
        api.get("/pools/none")
    with raises("airflow_unavailable http://127.0.0.1:1"):
        AirflowApi("http://127.0.0.1:1", "admin", "password").health()


def test_a_proxy_of_the_users_is_not_asked(
    airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    airflow.answers["GET", "/api/v2/monitor/health"] = (200, {})
    assert AirflowApi(f"http://127.0.0.1:{airflow.server_port}", "a", "b").health() == {}


def test_a_heartbeat_of_an_earlier_process_is_no_health(
    airflow: FakeAirflow, api: AirflowApi
) -> None:
    health: dict[str, dict[str, str | None]] = {"metadatabase": {"status": "healthy"}}
    for place in airflow_stack.COMPONENTS.values():
        if place:
            health[place[0]] = {"status": "healthy", place[1]: "2026-01-01T00:00:10+00:00"}
    airflow.answers["GET", "/api/v2/monitor/health"] = (200, health)
    then = 1767225610.0  # that heartbeat
    since = dict.fromkeys(airflow_stack.COMPONENTS, then - 1)
    assert airflow_stack._unhealthy(api, since) == []
    assert airflow_stack._unhealthy(api, since | {"scheduler": then + 1}) == ["scheduler"]
    health["triggerer"]["status"] = None
    assert airflow_stack._unhealthy(api, since) == ["triggerer"]
    airflow.answers["GET", "/api/v2/monitor/health"] = (500, {})
    assert airflow_stack._unhealthy(api, since) == list(airflow_stack.COMPONENTS)
