"""The executor that the installation on one machine has."""

import os
import subprocess
import sys
from pathlib import Path

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
