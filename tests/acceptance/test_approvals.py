"""What loses data waits until a person approves exactly that, under the real Airflow."""

import time
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

import weir
from tests.acceptance.asking import answer, clear, path_of, question
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
                answer(api, run + TASK, option)
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
        clear(api, "weir_truncate_stream", unquote(run.rpartition("/")[2]))
        assert api.wait("weir_truncate_stream", unquote(run.rpartition("/")[2])) == "success"
        assert store.count(STREAM) == 1, "cleared: it was done"


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
        question(api, "lingering", run, "task")
        path = path_of("lingering", run, "task")
        answer(api, path)
        assert api.wait("lingering", run, 180) == "success"
        assert api.get(path)["try_number"] == 1, "nobody was asked again"
        assert store.count("approve/soon") == 0
