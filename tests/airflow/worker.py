"""A worker of Airflow in a process of its own, for what starts Spark or is killed.

    python -m tests.airflow.worker DAG_FILE TASK TRY...

executes a task of a file, mapped ones for each index, once for each TRY, and prints each report as
a line of JSON, or the error. SIGTERM stops the task as Airflow does; TIMES_OUT are seconds after
which it times out. `Worker` starts it."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

REPOSITORY = Path(__file__).parents[2]


class Worker(subprocess.Popen[str]):
    """The process of a task of a DAG file."""

    def __init__(self, file: Path, task: str, *tries: int, **environment: str) -> None:
        path = f"{REPOSITORY}/plugins:{REPOSITORY}/examples"
        super().__init__(
            [sys.executable, "-m", "tests.airflow.worker", str(file), task, *map(str, tries)],
            cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": path, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def told(self) -> list[dict[str, Any]]:
        """Wait for its end, and return what the tries returned, or their `error`."""
        out, err = self.communicate(timeout=300)
        lines = [json.loads(line[2:]) for line in out.splitlines() if line.startswith("> ")]
        assert self.returncode == 0, out + err
        return lines


def _execute(operator: Any, number: int, map_index: int) -> dict[str, Any]:
    ti = SimpleNamespace(
        dag_id=operator.dag_id, run_id="r", task_id=operator.task_id, map_index=map_index,
        try_number=number, stats_tags={}, get_task_states=lambda **_: {},
    )  # fmt: skip
    from airflow.sdk.exceptions import AirflowTaskTimeout
    from airflow.sdk.execution_time.timeout import TimeoutPosix

    context = {"ti": ti, "run_id": "r", "params": operator.dag.params}
    try:
        operator.render_template_fields(context)
        signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
        with TimeoutPosix(float(os.environ.get("TIMES_OUT", "1000"))):
            report: dict[str, Any] = operator.execute(context)
        link = operator.operator_extra_links[-1].get_link(operator, ti_key=None)
        return {**report, "link": link} if link else report
    except (Exception, AirflowTaskTimeout) as error:
        return {"error": str(error), "kind": type(error).__name__}


def main(file: str, name: str, *tries: str) -> None:
    """Execute the tries of a task."""
    from airflow.sdk import DAG
    from airflow.sdk.definitions.mappedoperator import MappedOperator

    spec = spec_from_file_location("unusual_prefix_of_airflow_mine", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    dag = next(one for one in vars(module).values() if isinstance(one, DAG))
    task: Any = dag.get_task(name)
    mapped = isinstance(task, MappedOperator)
    for number in map(int, tries):
        each: list[Any] = [(-1, task)]
        if mapped:
            given = next(iter(task.expand_input.value.items()))
            each = [(i, task.unmap({given[0]: one})) for i, one in enumerate(given[1])]
        for map_index, operator in each:
            told = _execute(operator, number, map_index)
            print("> " + json.dumps(told, default=str), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
