"""The executor that the installation on one machine has."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from airflow.executors.workloads import ExecuteTask
from airflow.executors.workloads.base import BundleInfo
from airflow.executors.workloads.task import TaskInstanceDTO
from airflow.utils.state import TaskInstanceState

from weir.airflow.executor import LocalExecutor

WORKERS = """
import sys
from pathlib import Path
from airflow.executors.executor_loader import ExecutorLoader
executor = ExecutorLoader.get_default_executor()
known = set(sys.modules)
executor.start()
(worker,) = executor.workers
loaded = "libarrow.so" in Path(f"/proc/{worker}/maps").read_text()
Path(sys.argv[1]).write_text(f"{'pyarrow' in known} {loaded}")
executor.end()
"""


def test_processes_of_tasks_begin_with_what_an_append_needs(tmp_path: Path) -> None:
    named = f"{LocalExecutor.__module__}.{LocalExecutor.__name__}"
    environ = os.environ | {"AIRFLOW__CORE__EXECUTOR": named, "AIRFLOW__CORE__PARALLELISM": "1"}
    answer = tmp_path / "answer"
    told = subprocess.run(
        [sys.executable, "-c", WORKERS, str(answer)],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert answer.exists(), told.stdout + told.stderr
    assert answer.read_text() == "False True"  # the workers write to the same standard output


class Unmanned(LocalExecutor):
    """Has no workers: the test says when a process has ended, and with what."""

    def _check_workers(self) -> None:
        pass

    def seen(self, *ended: TaskInstanceState) -> list[Any]:
        """Return the states that the scheduler hears of after processes have ended."""
        for state in ended:
            self.result_queue.put((TASK.key, state, None))
        self.heartbeat()
        return [state for state, _ in self.get_event_buffer().values()]


TASK = ExecuteTask(
    ti=TaskInstanceDTO(
        id=uuid4(), task_id="t", dag_id="d", run_id="r", try_number=1, dag_version_id=uuid4(),
        pool_slots=1, priority_weight=1, queue="default",
    ),
    dag_rel_path=Path("d.py"), token="", log_path=None,
    bundle_info=BundleInfo(name="dags"),
)  # fmt: skip


def test_a_process_that_ends_after_its_task_goes_on_in_another_is_not_reported() -> None:
    success, failed = TaskInstanceState.SUCCESS, TaskInstanceState.FAILED
    executor: Any = Unmanned(parallelism=2)
    executor.is_mp_using_fork = False  # it forks no workers
    executor.start()
    executor.queue_workload(TASK, session=None)
    assert executor.seen() == []
    executor.queue_workload(TASK, session=None)  # it has waited, and was answered
    assert executor.seen(success) == [], "the end of the one that waited"
    assert executor.seen(failed) == [failed], "and of the one that went on"
    executor.queue_workload(TASK, session=None)
    assert executor.seen() == []
    assert executor.seen(success) == [success], "a process alone"
    executor.queue_workload(TASK, session=None)
    executor.fail(TASK.key)  # the scheduler gives it up
    assert executor.seen() == [failed]
