"""A real Airflow maps tasks over a list that is another one when its task is cleared."""

import json
from typing import Any

import pytest

import weir
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation

pytestmark = [pytest.mark.release, pytest.mark.timeout(600)]
DAG = """
import json
from datetime import datetime

from airflow.sdk import DAG, task, task_group

with DAG("mapped_lists", schedule=None, catchup=False, default_args={"retries": 0}):

    @task
    def listed():
        with open(%r) as file:
            return json.load(file)

    @task
    def stamped(names):
        return [{"name": name, "at": datetime(2026, 6, 1)} for name in names]

    @task.weir_append(stream="test/mapped")
    def plain(name):
        return [{"item": f"plain {name}"}] * 10

    @task.weir_append(
        stream="test/mapped", batch_id="{{ run_id }} {{ task.op_kwargs['one'].name }}"
    )
    def given(one, of):
        return [{"item": f"given {one['name']}"}] * 10

    @task.weir_append(stream="test/mapped")
    def inner(one):
        return [{"item": f"inner {one}"}] * 10

    @task_group
    def group(one):
        inner(one)

    names = listed()
    plain.expand(name=names)
    given.partial(of=1).expand(one=stamped(names))
    group.expand(one=names.map(str.upper))
"""


def test_a_list_that_is_cleared_and_made_anew_is_appended_once(installation: Installation) -> None:
    folder = installation.state.parent
    api: AirflowApi = installation.airflow.api()
    given = folder / "listed.json"
    (folder / "dags/mapped_lists.py").write_text(DAG % str(given))
    settings: Any = weir.settings.load(installation.environment())
    with weir.open(settings=settings) as store:
        store.create_stream("test/mapped", "item")

        def appended() -> dict[str, int]:
            items = store.read("test/mapped")["item"].to_pylist()
            return {one: items.count(one) for one in set(items)}

        def each(names: str) -> dict[str, int]:
            counts: dict[str, int] = {}
            for name in names:
                for one in (f"plain {name}", f"given {name}", f"inner {name.upper()}"):
                    counts[one] = 10
            return counts

        given.write_text(json.dumps(["a", "b", "c"]))
        run = api.trigger("mapped_lists")
        assert api.wait("mapped_lists", run) == "success"
        assert appended() == each("abc")

        def clear(names: list[str]) -> str:
            given.write_text(json.dumps(names))
            what = {"dag_run_id": run, "task_ids": ["listed"], "include_downstream": True,
                    "dry_run": False, "only_failed": False, "reset_dag_runs": True}  # fmt: skip
            api.post("/dags/mapped_lists/clearTaskInstances", what)
            return api.wait("mapped_lists", run)

        assert clear(["z", "a", "b", "c"]) == "success"
        assert appended() == each("abcz")
        assert clear(["c", "a"]) == "success"
        assert appended() == each("abcz")
