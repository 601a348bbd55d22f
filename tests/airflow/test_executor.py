"""The executor that the installation on one machine has."""

import os
import subprocess
import sys

from weir.airflow.executor import LocalExecutor

WORKERS = """
import sys
from pathlib import Path
from airflow.executors.executor_loader import ExecutorLoader
executor = ExecutorLoader.get_default_executor()
known = set(sys.modules)
executor.start()
(worker,) = executor.workers
print("pyarrow" in known, "libarrow.so" in Path(f"/proc/{worker}/maps").read_text())
executor.end()
"""


def test_processes_of_tasks_begin_with_what_an_append_needs() -> None:
    named = f"{LocalExecutor.__module__}.{LocalExecutor.__name__}"
    environ = os.environ | {"AIRFLOW__CORE__EXECUTOR": named, "AIRFLOW__CORE__PARALLELISM": "1"}
    told = subprocess.run(
        [sys.executable, "-c", WORKERS], env=environ, capture_output=True, text=True, timeout=120
    )
    assert "False True" in told.stdout.splitlines(), told.stdout + told.stderr
