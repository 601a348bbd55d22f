"""What Weir costs in Airflow: reading its DAG files, and a task that appends a few rows."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import weir
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.local.installation import Installation
from weir.settings import Settings, as_environment
from weir.source_tree import REPOSITORY

PARSE = """
import sys
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
folder = Path(sys.argv[1])
bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="bench")
assert bag.dags and not bag.import_errors, bag.import_errors
"""
EMPTY = """
from airflow.sdk import DAG, task
with DAG("{name}", schedule=None):
    @task
    def work():
        return None
    work()
"""
APPEND = """
from airflow.sdk import DAG, task
with DAG("{name}", schedule=None):
    @task.weir_append(stream="bench/tasks")
    def work():
        return [{{"n": n}} for n in range(10)]
    work()
"""


def parse(setting: Setting) -> Figure:
    """Return the figure of a process that reads all DAG files, beside one that reads as many that
    have one DAG of Airflow each."""
    assert REPOSITORY is not None
    ours = REPOSITORY / "dags"
    empty = setting.folder / f"dags-{setting.number()}"
    empty.mkdir()
    for number, _ in enumerate(ours.glob("*.py")):
        (empty / f"empty_{number}.py").write_text(EMPTY.format(name=f"empty_{number}"))
    environ = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW_")}
    environ["AIRFLOW_HOME"] = str(setting.folder / "airflow-parse")
    # Forms suggest names: as many as they show are there.
    environ |= as_environment(setting.settings)
    with weir.open(settings=setting.settings) as store:
        for number in range(50):
            store.create_stream(f"parse/stream-{number}", "n")

    def read(folder: Path) -> None:
        command = [sys.executable, "-c", PARSE, str(folder)]
        subprocess.run(command, env=environ, check=True, capture_output=True)

    return Figure(
        "airflow/parse",
        "a process that starts and reads all DAG files, beside one that reads as many files with "
        "one DAG of Airflow each",
        lambda: read(ours),
        lambda: read(empty),
        limit=2.0,
    )


def task(setting: Setting) -> Figure:
    """Return the figure of a task that appends ten rows, beside an empty one: from its start to its
    end, as Airflow records them, under the real scheduler."""
    home = setting.folder / f"airflow-{setting.number()}"
    dags = home / "dags"
    dags.mkdir(parents=True)
    (dags / "empty.py").write_text(EMPTY.format(name="empty"))
    (dags / "append.py").write_text(APPEND.format(name="append"))
    installation = Installation(home / ".weir", dags=dags, durable=False)
    setting.at_end.callback(installation.postgres.remove)
    setting.at_end.callback(installation.stop)
    installation.start()
    settings = Settings(
        state=installation.state, database=installation.postgres.dsn("weir", "weir_app"),
        warehouse=str(installation.state / "warehouse"),
    )  # fmt: skip
    with weir.open(settings=settings) as store:
        store.create_stream("bench/tasks", "n")
    api = installation.airflow.api()

    def seconds(dag: str) -> float:
        run = api.trigger(dag)
        assert api.wait(dag, run) == "success"
        found: dict[str, Any] = api.get(f"/dags/{dag}/dagRuns/{quote(run)}/taskInstances/work")
        return float(found["duration"])

    return Figure(
        "airflow/task",
        "@task.weir_append of ten rows beside an empty @task, from start to end",
        lambda: seconds("append"),
        lambda: seconds("empty"),
        limit=2.0,
        small_runs=3,
    )


FIGURES = {"airflow/parse": parse, "airflow/task": task}
