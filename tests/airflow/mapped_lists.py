"""A run of Airflow whose mapped tasks get another list each time it is cleared.

    python mapped_lists.py LIST...

makes a database of Airflow in AIRFLOW_HOME, runs the DAG below once for each LIST (a JSON list of
names), as the same run, and prints the states of its tasks as a line of JSON. A copy of this file
is alone in the folder of DAGs, because each run reads all files there."""

import json
import os
import sys
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, task, task_group

STREAM = "test/mapped"
BATCH = "{{ run_id }} {{ task.op_kwargs['one'].name }}"

with DAG("mapped_lists", schedule=None, default_args={"retries": 0}) as dag:

    @task
    def listed() -> list[str]:
        found: list[str] = json.loads(os.environ["LISTED"])
        return found

    @task
    def stamped(names: list[str]) -> list[dict[str, Any]]:
        return [{"name": name, "at": datetime.now(UTC)} for name in names]

    @task.weir_append(stream=STREAM)  # type: ignore[untyped-decorator]
    def plain(name: str) -> list[dict[str, str]]:
        return [{"item": f"plain {name}"}] * 10

    @task.weir_append(stream=STREAM, batch_id=BATCH)  # type: ignore[untyped-decorator]
    def given(one: dict[str, Any], of: int) -> list[dict[str, str]]:
        return [{"item": f"given {one['name']}"}] * 10 * of

    @task.weir_append(stream=STREAM)  # type: ignore[untyped-decorator]
    def inner(one: str) -> list[dict[str, str]]:
        return [{"item": f"inner {one}"}] * 10

    @task_group  # type: ignore[untyped-decorator]
    def group(one: str) -> None:
        inner(one)

    @task.weir_append(stream=STREAM)  # type: ignore[untyped-decorator]
    def each(one: dict[str, Any]) -> list[dict[str, str]]:
        return [{"item": f"each {one['name']}"}] * 10

    names = listed()
    plain.expand(name=names)
    given.partial(of=1).expand(one=stamped(names))
    group.expand(one=names.map(lambda name: name.upper()))
    each.expand_kwargs(names.map(lambda name: {"one": {"name": name}}))


def main(*lists: str) -> None:
    """Run the DAG once for each list."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.db import initdb

    initdb()
    DagRun.generate_run_id = staticmethod(lambda **_: "cleared")  # as a run that is cleared keeps
    for one in lists:
        os.environ["LISTED"] = one
        run = dag.test(logical_date=datetime(2026, 6, 1, tzinfo=UTC))
        states = {f"{ti.task_id} {ti.map_index}": ti.state for ti in run.get_task_instances()}
        print("> " + json.dumps({"run": run.run_id, "states": states}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
