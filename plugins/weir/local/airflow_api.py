"""A client of Airflow's REST API, for the demo, the tests and the start-up."""

import http.client
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, TypedDict

from weir.errors import Conflict, InvalidInput, NotFound, Unavailable

log = logging.getLogger("weir.local")

_DONE = {"success", "failed"}
# Requests to 127.0.0.1 must not go through the user's proxy.
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


class Task(TypedDict):
    """What is read of a task instance."""

    task_id: str
    map_index: int
    state: str | None
    try_number: int


class _Error(TypedDict, total=False):
    exc_type: str
    exc_value: str
    frames: list[dict[str, object]] | None


class _Entry(TypedDict, total=False):
    event: str
    error_detail: list[_Error] | None


class AirflowApi:
    """A client that is logged in as one user of the Airflow at `url`."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self.url = url
        self._login = {"username": username, "password": password}
        self._token: str | None = None

    def health(self) -> dict[str, dict[str, str | None]]:
        """Return the status and the latest heartbeat of each component. Needs no login."""
        answer: dict[str, dict[str, str | None]] = self._send("GET", "/api/v2/monitor/health")
        return answer

    def get(self, path: str) -> Any:
        """Return the JSON at a path below /api/v2."""
        return self._authorized("GET", path, None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Post JSON to a path below /api/v2 and return the answer."""
        return self._authorized("POST", path, body)

    def patch(self, path: str, body: Mapping[str, object]) -> object:
        """Change the object at a path below /api/v2 and return the answer."""
        return self._authorized("PATCH", path, body)

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, object] | None = None,
        run_id: str | None = None,
        patience: float = 60,
    ) -> str:
        """Start a run and return its id. The same run id again means the same run.

        Waits `patience` seconds for a DAG that Airflow does not know yet, because Airflow reads the
        files some seconds after it starts. Raises NotFound if it has none then, and Unavailable
        if it does not answer.
        """
        body: dict[str, object] = {"logical_date": None, "conf": conf or {}}
        if run_id is not None:
            body["dag_run_id"] = run_id
        end = time.monotonic() + patience
        while True:
            try:
                return str(self.post(f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])
            except Conflict:
                if run_id is None:
                    raise
                return run_id
            except NotFound:
                if time.monotonic() > end:
                    raise NotFound(
                        "airflow_not_found", f"Airflow has no DAG {dag_id!r}.{self._imports()}"
                    ) from None
                time.sleep(0.5)

    def wait(self, dag_id: str, run_id: str, timeout: float = 600) -> str:
        """Wait for the end of a run, log why it failed, and return its state, `success` or
        `failed`. Raises Unavailable if the run is not over after `timeout` seconds."""
        end = time.monotonic() + timeout
        while (state := self.get(_run(dag_id, run_id))["state"]) not in _DONE:
            if time.monotonic() > end:
                raise Unavailable(
                    "run_not_over",
                    f"run {run_id} of {dag_id} is still {state} after {timeout:.0f} s "
                    f"({self._unfinished(dag_id, run_id)}); look at it in Airflow.",
                )
            time.sleep(0.3)
        if state == "failed":
            log.error("%s %s failed:\n%s", dag_id, run_id, self.failure(dag_id, run_id))
        return str(state)

    def tasks(self, dag_id: str, run_id: str) -> list[Task]:
        """Return the task instances of a run as Airflow describes them, one for each mapped
        task."""
        path = f"{_run(dag_id, run_id)}/taskInstances?limit=100"
        found: list[Task] = []
        while True:
            page = self.get(f"{path}&offset={len(found)}")
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                return found

    def under_way(self) -> list[str]:
        """Return the runs that have begun and not ended, as "DAG run", at most a hundred."""
        found = self.get("/dags/~/dagRuns?state=running&limit=100&order_by=start_date")
        return [f"{run['dag_id']} {run['dag_run_id']}" for run in found["dag_runs"]]

    def failure(self, dag_id: str, run_id: str, lines: int = 30) -> str:
        """Return the last lines of the log of each failed task."""
        parts = []
        for task in self.tasks(dag_id, run_id):
            if task["state"] == "failed":
                index = task["map_index"]
                text = self.task_log(dag_id, run_id, task["task_id"], index, task["try_number"])
                log_lines = [line for line in text.splitlines() if not line.startswith("::")]
                parts.append("\n".join([f"{_name(task)}:", *log_lines[-lines:]]))
        return "\n".join(parts) or "no task failed"

    def task_log(
        self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, try_number: int = 1
    ) -> str:
        """Return the log of one try of a task."""
        path = f"{_task(dag_id, run_id, task_id)}/logs/{try_number}"
        answer = self.get(f"{path}?map_index={map_index}&full_content=true")
        return "\n".join(_log_line(entry) for entry in answer["content"])

    def _unfinished(self, dag_id: str, run_id: str) -> str:
        """Return the state and the try of each task of a run that has not succeeded."""
        return ", ".join(
            f"{_name(task)}: {task['state']}, try {task['try_number']}"
            for task in self.tasks(dag_id, run_id)
            if task["state"] != "success"
        )

    def _imports(self) -> str:
        errors = self.get("/importErrors")["import_errors"]
        return "".join(f"\n{error['filename']}: {error['stack_trace']}" for error in errors)

    def _authorized(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        if self._token is None:
            self._token = self._send("POST", "/auth/token", self._login)["access_token"]
        return self._send(method, "/api/v2" + path, body)

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 (always http)
        request.add_header("Accept", "application/json")
        if self._token is not None:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with _open(request, timeout=60) as response:
                text = response.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            answer = error.read().decode(errors="replace")[:2000]
            said = f"Airflow answers {error.code} to {method} {path} ({answer})"
            if error.code == 404:
                raise NotFound("airflow_not_found", f"{said}; check the names in it.") from None
            if error.code == 409:
                raise Conflict("airflow_conflict", f"{said}; look at it in Airflow.") from None
            if error.code < 500:
                raise InvalidInput(
                    "airflow_refused", f"{said}; correct the request or the login."
                ) from None
            raise Unavailable(
                "airflow_unavailable", f"{said}; read the log of its API server, and try again."
            ) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # refused, or cut off
            raise Unavailable(
                "airflow_unavailable",
                f"Airflow does not answer at {self.url} ({error}); start it with `weir up`, or try "
                "again.",
            ) from None


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, '')}"


def _task(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_run(dag_id, run_id)}/taskInstances/{urllib.parse.quote(task_id, '')}"


def _name(task: Task) -> str:
    """Return the name of a task instance, with its index if it is mapped."""
    index = task["map_index"]
    return task["task_id"] + (f"[{index}]" if index >= 0 else "")


def _log_line(entry: _Entry | str) -> str:
    """Return a line of a task's log as text. An exception is an entry with a traceback beside its
    text."""
    if isinstance(entry, str):
        return entry
    lines = [entry.get("event", "")]
    for error in entry.get("error_detail") or []:
        frames = error.get("frames") or []
        lines += [f"  {frame['filename']}:{frame['lineno']} in {frame['name']}" for frame in frames]
        lines.append(f"{error.get('exc_type')}: {error.get('exc_value')}")
    return "\n".join(lines)
