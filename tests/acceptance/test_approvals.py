"""What loses data waits until a person approves exactly that, under the real Airflow."""

import time
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

import weir
from tests.raises import raises
from weir.local.installation import Installation
from weir.settings import Settings

pytestmark = [pytest.mark.timeout(600), pytest.mark.release]
STREAM = "approve/numbers"
TASK = "/taskInstances/truncate_stream"
# The process that asked ends when the one that was approved has begun, as on a busy machine.
LINGERING = """
import threading
import time
from pathlib import Path

from airflow.sdk import DAG
from weir.airflow import TruncateOperator

BEGUN = Path({begun!r})

def linger():
    while not BEGUN.exists():
        time.sleep(0.1)

class Lingering(TruncateOperator):
    def execute(self, context):
        threading.Thread(target=linger).start()
        return super().execute(context)

    def approved(self, context, **answer):
        BEGUN.touch()
        time.sleep(5)  # meanwhile the scheduler hears of the end of the other
        return super().approved(context, **answer)

with DAG("lingering", schedule=None):
    Lingering(task_id="task", stream="approve/soon", cut="tail", dry_run=False, engine="pyarrow")
"""


def test_a_loss_is_approved_rejected_or_void(
    installation: Installation, settings: Settings
) -> None:
    api = installation.airflow.api()
    form = {"stream": STREAM, "cut": "tail", "dry_run": False}

    def state(run: str, *wanted: str) -> str:
        """Wait for a state of the task of a run."""
        end = time.monotonic() + 180
        while (now := str(api.get(run + TASK)["state"])) not in wanted:
            if time.monotonic() > end:
                logs = (installation.state / "airflow/logs/dag_id=weir_truncate_stream").rglob(
                    "*.log"
                )
                said = "\n".join(f"{path}\n{path.read_text()}" for path in logs)
                pytest.fail(f"the task is {now}: {api.get(run + TASK)}\n{said}")
            time.sleep(0.3)
        return now

    def asked() -> str:
        """Trigger the form, wait until it asks, and return the run."""
        run = api.trigger("weir_truncate_stream", form)
        path = f"/dags/weir_truncate_stream/dagRuns/{quote(run)}"
        state(path, "awaiting_input", "failed", "success")
        return path

    def answered(run: str, option: str, meant: str = "") -> str:
        """Answer, and return how the task ends. A machine that is slow lets Airflow start a task
        twice and kill it; its next try asks again: is that `meant`, it is answered, too."""
        while True:
            asked = api.get(f"{run}{TASK}/-1/hitlDetails")
            if not asked["response_received"]:
                if meant not in asked["body"]:
                    return "asked again"
                answer = {"chosen_options": [option], "params_input": {}}
                api.patch(f"{run}{TASK}/-1/hitlDetails", answer)
            now = state(run, "awaiting_input", "success", "failed", "skipped")
            if now != "awaiting_input":
                return now
            time.sleep(0.3)

    with weir.open(settings=settings) as store:
        store.create_stream(STREAM, "n")
        store.append(STREAM, [{"n": 1}, {"n": 2}])
        store.create_reader_group("approve", [STREAM])
        run = asked()
        body = api.get(f"{run}{TASK}/-1/hitlDetails")["body"]
        assert "would truncate 2 events of stream approve/numbers" in body
        assert "approve would lose 2 events that it has not read" in body
        assert answered(run, "Reject") == "skipped"
        run = asked()
        for batch in store.reader("approve"):
            batch.commit({})
        ended = answered(run, "Approve", "approve would lose 2 events")
        assert ended in ("failed", "asked again"), "the world has moved"
        assert store.count(STREAM) == 2
        for there in range(2, 6):
            run = asked()
            store.append(STREAM, [{"n": 3}])
            if (ended := answered(run, "Approve", f"truncate {there} events")) == "success":
                break
        assert (ended, store.count(STREAM)) == ("success", 1), "what came meanwhile stays"
        api.post("/dags/weir_truncate_stream/clearTaskInstances", {
            "dag_run_id": unquote(run.rpartition("/")[2]), "dry_run": False, "only_failed": False,
            "reset_dag_runs": True,
        })  # fmt: skip
        state(run, "queued", "scheduled", "running", "success")
        assert api.wait("weir_truncate_stream", unquote(run.rpartition("/")[2])) == "success"
        assert store.count(STREAM) == 1, "cleared: it was done"


def test_a_viewer_neither_erases_nor_approves_an_erasure(
    installation: Installation, settings: Settings
) -> None:
    api, viewer = installation.airflow.api(), installation.airflow.api("viewer")
    form = {"stream": "approve/people", "reason": "asked", "keys": ["ann"], "dry_run": False}
    with weir.open(settings=settings) as store:
        store.create_stream("approve/people", "who")
        store.append("approve/people", [{"who": "ann"}, {"who": "bob"}])
        run = api.trigger("weir_erase", form)
        path = f"/dags/weir_erase/dagRuns/{quote(run)}/taskInstances/erase"
        end = time.monotonic() + 180
        while (now := api.get(path)["state"]) != "awaiting_input":
            assert now not in ("failed", "success"), api.failure("weir_erase", run)
            assert time.monotonic() < end, now
            time.sleep(0.3)
        approve = {"chosen_options": ["Approve"], "params_input": {}}
        again = {"dag_run_id": run, "dry_run": False}
        with raises("airflow_refused 403"):
            viewer.trigger("weir_erase", form)
        with raises("airflow_refused 403"):
            viewer.patch(f"{path}/-1/hitlDetails", approve)
        with raises("airflow_refused 403"):
            viewer.post("/dags/weir_erase/clearTaskInstances", again)
        assert api.get(path)["state"] == "awaiting_input"
        assert not api.get(f"{path}/-1/hitlDetails")["response_received"]
        assert store.count("approve/people") == 2


def test_an_approval_counts_though_the_process_that_asked_has_not_ended(
    installation: Installation, settings: Settings, tmp_path: Path
) -> None:
    api = installation.airflow.api()
    written = LINGERING.format(begun=str(tmp_path / "begun"))
    (installation.state.parent / "dags/lingering.py").write_text(written)
    with weir.open(settings=settings) as store:
        store.create_stream("approve/soon", "n")
        store.append("approve/soon", [{"n": 1}])
        run = api.trigger("lingering")
        path = f"/dags/lingering/dagRuns/{quote(run)}/taskInstances/task"
        end = time.monotonic() + 180
        while (task := api.get(path))["state"] != "awaiting_input":
            assert task["state"] not in ("failed", "success"), api.failure("lingering", run)
            assert time.monotonic() < end, task
            time.sleep(0.1)
        approve = {"chosen_options": ["Approve"], "params_input": {}}
        api.patch(f"{path}/-1/hitlDetails", approve)
        assert api.wait("lingering", run, 180) == "success"
        assert api.get(path)["try_number"] == 1, "nobody was asked again"
        assert store.count("approve/soon") == 0
