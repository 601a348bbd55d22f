"""What tests ask a running Airflow again and again, and what they answer it."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from weir.errors import NotFound
from weir.local.airflow_api import AirflowApi


def until(what: str, found: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Ask until the answer is true, and return it. What Airflow has not read yet is not there."""
    end = time.monotonic() + seconds
    while True:
        try:
            if answer := found():
                return answer
        except NotFound:
            pass
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.2)


def path_of(dag: str, run: str, task: str) -> str:
    """Return the path of a task of a run in Airflow's API."""
    return f"/dags/{dag}/dagRuns/{quote(run, '')}/taskInstances/{task}"


def question(api: AirflowApi, dag: str, run: str, task: str) -> str:
    """Wait until a task asks whether something may be lost, and return what it says."""
    path = path_of(dag, run, task)

    def asks() -> bool:
        now = api.get(path)["state"]
        assert now not in ("failed", "success"), api.failure(dag, run)
        return bool(now == "awaiting_input")

    until("a question", asks)
    return str(api.get(f"{path}/-1/hitlDetails")["body"])


def answer(api: AirflowApi, path: str, option: str = "Approve") -> None:
    """Answer what a task asks."""
    api.patch(f"{path}/-1/hitlDetails", {"chosen_options": [option], "params_input": {}})


def clear(api: AirflowApi, dag: str, run: str) -> None:
    """Clear a run, whose tasks then run once more, and wait until it has begun."""
    api.post(f"/dags/{dag}/clearTaskInstances", {
        "dag_run_id": run, "dry_run": False, "only_failed": False, "reset_dag_runs": True,
    })  # fmt: skip
    path = f"/dags/{dag}/dagRuns/{quote(run, '')}"
    until("the run to begin anew", lambda: api.get(path)["state"] in ("queued", "running"))
