"""The example DAGs are ones that Airflow takes, and pages of the documentation name them all."""

import csv
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk.module_loading import import_string

from weir.airflow import stream_asset, stream_hours
from weir.airflow.actions import ApplyOperator
from weir.airflow.operators import WeirJobOperator
from weir.local import airflow_environment
from weir.local.state_folder import StateFolder
from weir.operations.form import parse
from weir.operations.jobs import FORMS
from weir.settings import Settings

FOLDER = airflow_environment.EXAMPLES


@pytest.fixture(scope="module")
def bag() -> BundleDagBag:
    return BundleDagBag(dag_folder=str(FOLDER), bundle_path=FOLDER, bundle_name="weir-examples")


def test_each_file_is_a_dag_of_its_name_that_says_what_it_shows(bag: BundleDagBag) -> None:
    assert (bag.import_errors, bag.captured_warnings) == ({}, {})
    files = {path.stem for path in FOLDER.glob("example_*.py")}
    assert len(files) == 5
    assert {dag_id: Path(dag.fileloc).stem for dag_id, dag in bag.dags.items()} == {
        name: name for name in files
    }
    page = (Path(__file__).parents[2] / "docs/airflow.md").read_text()
    for dag_id, dag in bag.dags.items():
        assert dag.doc_md.startswith("### ")
        assert f"`{dag_id}`" in page


def test_what_they_declare_and_append_are_arguments_of_the_actions(bag: BundleDagBag) -> None:
    tasks = [one for dag in bag.dags.values() for one in dag.tasks if not one.is_mapped]
    jobs = [one for one in tasks if isinstance(one, WeirJobOperator) and one.job != "process"]
    assert {one.job for one in jobs} == {"apply", "ingest"}
    for one in jobs:
        parse(FORMS[one.job], one.arguments or {})


def test_two_are_started_by_what_another_appends(bag: BundleDagBag) -> None:
    for name, asset in {
        "example_table_by_asset": stream_asset("example/orders"),
        "example_hours_with_late_data": stream_hours("example/orders"),
    }.items():
        assert asset.uri in str(bag.dags[name].timetable.asset_condition)


def test_an_airflow_that_is_to_have_them_has_them_beside_its_own(tmp_path: Path) -> None:
    state, name = StateFolder(tmp_path / "state"), "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"
    ports = {"api": 1, "log": 2}
    environment = airflow_environment.airflow_environment
    assert name not in environment(state, tmp_path, ports, "id", examples=False)
    own, examples = json.loads(environment(state, tmp_path, ports, "id", examples=True)[name])
    assert (own["name"], own["kwargs"]) == ("dags-folder", {}), "AIRFLOW__CORE__DAGS_FOLDER"
    bundle = import_string(examples["classpath"])(name=examples["name"], **examples["kwargs"])
    assert bundle.path == FOLDER


def _run(dag: Any, execute: Callable[..., Any]) -> dict[str, Any]:
    """Execute the tasks of a DAG one after the other, but mapped ones at once; return what they
    returned."""
    returned: dict[str, Any] = {}
    for one in dag.topological_sort():
        if type(one) is ApplyOperator:
            one.engine = "auto"  # nothing here may submit a job
        if one.is_mapped:
            [(name, values)] = one.op_kwargs_expand_input.value.items()
            tasks = [one.unmap({"op_kwargs": {name: value}}) for value in values]
            with ThreadPoolExecutor(len(tasks)) as pool:
                started = [pool.submit(execute, task, map_index=n) for n, task in enumerate(tasks)]
                returned[one.task_id] = [each.result() for each in started]
        else:
            returned[one.task_id] = execute(one)
    return returned


def test_those_that_need_no_spark_do_what_their_pages_say(
    bag: BundleDagBag, execute: Callable[..., Any], settings: Settings
) -> None:
    done = _run(bag.dags["example_aligned_streams"], execute)
    assert done["paid"]["events"] == 30
    found = pq.read_table(Path(settings.output_roots[0]) / "example_paid", columns=["amount"])
    assert sorted(found["amount"].to_pylist()) == [n * 2.5 for n in range(0, 20, 2)]

    done = _run(bag.dags["example_fan_out"], execute)
    assert sum(one["events"] for one in done["clean"]) == done["export"] == 1000
    exported = Path(settings.output_roots[0]) / "example_visits/visits.csv"
    visits = list(csv.DictReader(exported.open()))
    assert sorted(one["page"] for one in visits) == sorted(f"/p{n}" for n in range(1000))
