"""The DAGs as Airflow's DAG processor reads them, and as people and the scheduler find them."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from tests.airflow.test_forms import GOOD
from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.airflow.dags import weir_dags
from weir.airflow.forms import form
from weir.airflow.operators import WeirJobOperator
from weir.airflow.work import WorkTrigger
from weir.database.connection import Database
from weir.operations.jobs import ACTIONS, FORMS
from weir.reader_groups.groups.consumers import declare_consumer

FOLDER = Path(__file__).parents[2] / "dags"
JOBS = FOLDER.parent / "spark_jobs"
# Minutes of the hour at which they start: not all at once.
PERIODIC = {
    "weir_stream_cuts": "*/5 * * * *",
    "weir_checkpoints": "2-59/5 * * * *",
    "weir_adjunct": "1-59/5 * * * *",
    "weir_scale": "4-59/5 * * * *",
    "weir_retention": "*/30 * * * *",
    "weir_upkeep": "17 * * * *",
    "weir_audit": "23 3 * * 0",
}
# What must be filled in. All the rest has a default that refuses, keeps or says rather than loses.
MANUAL = {f"weir_{job}": set(given) for job, given in GOOD.items() if f"weir_{job}" not in PERIODIC}
SAFE = {
    "on_missing_key": "automatic",
    "on_bad_rows": "fail",
    "refuse_erased": False,
    "allow_repeated_files": False,
    "subscriber": True,
    "start": "head",
    "on_gap": "fail",
    "order": "segment",
    "allow_repeat": False,
    "barrier": False,
    "cancel": False,
    "unknown_files": "report",
    "second_name": False,
    "unread_too": False,
    "repair": False,
}


@pytest.fixture(scope="module")
def bag() -> BundleDagBag:
    return BundleDagBag(dag_folder=str(FOLDER), bundle_path=FOLDER, bundle_name="dags-folder")


@pytest.fixture(params=sorted(PERIODIC | MANUAL))
def dag(bag: BundleDagBag, request: pytest.FixtureRequest) -> DAG:
    found: DAG = bag.dags[request.param]
    return found


@pytest.fixture
def task(dag: DAG) -> WeirJobOperator:
    """The one that submits the DAG's job."""
    *before, task = dag.topological_sort()
    if dag.dag_id == "weir_process":
        assert [one.task_id for one in before] == ["readers"]
        task = task.unmap({"arguments": None})
    else:
        assert before == []
    assert isinstance(task, WeirJobOperator)
    return task


def test_the_folder_is_read_without_errors_and_warnings(bag: BundleDagBag) -> None:
    assert bag.import_errors == {}
    assert bag.captured_warnings == {}
    assert set(bag.dags) == {*PERIODIC, *MANUAL, "weir_partitions"}


def test_each_job_has_a_dag_in_the_file_that_says_who_starts_it(bag: BundleDagBag) -> None:
    assert set(bag.dags) == {*(f"weir_{job}" for job in ACTIONS), "weir_partitions"}
    assert {job.stem for job in JOBS.glob("*.py")} == set(ACTIONS)
    for name, dag in bag.dags.items():
        file = "weir_periodic.py" if name in PERIODIC else "weir_by_hand.py"
        file = "weir_partitions.py" if name == "weir_partitions" else file
        assert dag.fileloc == str(FOLDER / file), name


def schedule_of(dag: DAG) -> str:
    """When Airflow runs a DAG, or looks whether it is to run."""
    if isinstance(dag.schedule, str):
        return dag.schedule
    assert isinstance(dag.schedule, list)
    [asset] = dag.schedule
    [watcher] = asset.watchers
    trigger = watcher.trigger
    assert isinstance(trigger, WorkTrigger)
    assert asset.name == f"weir {trigger.job} ({trigger.schedule})"
    assert f"weir_{trigger.job}" == dag.dag_id
    return trigger.schedule


def test_the_file_of_periodic_dags_says_the_schedule_of_each(bag: BundleDagBag) -> None:
    """What somebody reads there is what Airflow does."""
    tree = ast.parse((FOLDER / "weir_periodic.py").read_text())
    written = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            [made] = node.decorator_list
            assert isinstance(made, ast.Call)
            written[node.name] = ast.literal_eval(made.args[0])
    assert written == PERIODIC == {name: schedule_of(bag.dags[name]) for name in written}
    assert len(set(PERIODIC.values())) == len(PERIODIC), "they are staggered"


def test_a_job_that_cannot_be_imported_hides_itself_alone_and_airflow_says_why(
    tmp_path: Path,
) -> None:
    """A copy of the tree, in which the job of retention needs what is not installed."""
    for folder in ("plugins", "spark_jobs", "dags", "sql"):
        shutil.copytree(
            FOLDER.parent / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    broken = tmp_path / "spark_jobs" / "retention.py"
    broken.write_text(broken.read_text().replace("\nfrom ", "\nimport nowhere\nfrom ", 1))
    program = (
        "import json, pathlib, sys\n"
        "from airflow.dag_processing.dagbag import BundleDagBag\n"
        "found = BundleDagBag('dags', bundle_path=pathlib.Path('dags'), bundle_name='b')\n"
        "print(json.dumps([sorted(found.dags), found.import_errors]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "plugins")},
    )  # fmt: skip
    dags, errors = json.loads(done.stdout.splitlines()[-1])
    assert set(dags) == {*PERIODIC, *MANUAL, "weir_partitions"} - {"weir_retention"}
    [(file, error)] = errors.items()
    assert file.endswith("weir_check.py")
    assert "spark_jobs/retention.py can't be imported (ModuleNotFoundError: No module" in error


def test_where_a_task_runs_its_own_dag_alone_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "weir_ingest")
    assert set(weir_dags()) == {"weir_ingest"}
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "shop_totals")  # of a file with both
    assert weir_dags() == {}
    monkeypatch.delenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID")
    assert set(weir_dags()) == {*PERIODIC, *MANUAL, "weir_partitions"}


def test_a_dag_submits_the_job_of_its_name(dag: DAG, task: WeirJobOperator) -> None:
    assert task.job in FORMS
    assert task.task_id == task.job
    assert dag.dag_id == f"weir_{task.job}"
    assert task.application == str(JOBS / f"{task.job}.py"), "what Spark's UI and YARN show"
    assert task.arguments is None, "the job takes what the form gives"
    assert not task.outlets, "the triggerer announces what is committed"


def test_a_consumer_has_a_task_for_each_of_its_readers(
    bag: BundleDagBag,
    database: Database,
    test_database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    readers, process = bag.dags["weir_process"].topological_sort()
    form = {"reader_group": "g", "function": "a:b", "outputs": ["parquet:{{dag}}"], "readers": 3}
    untouched: dict[str, Any] = {
        "on_error": "stop", "order": None, "batch_events": 0, "parameters": {},
    }  # fmt: skip
    assert readers.python_callable(form | untouched) == [form] * 3
    name = Group.made(Lane.made(database)).name
    declare_consumer(database, name, {"readers": 2}, request_id="r")
    given = form | {"reader_group": name}
    del given["readers"]
    assert readers.python_callable(given | {"readers": 1}) == [given] * 2, "as declared"
    assert process.expand_input.value["arguments"].operator is readers
    with pytest.raises(AirflowFailException, match=r'^"Readers" is 0, which is not a whole number'):
        readers.python_callable(form | {"readers": 0})


def test_a_dag_is_unpaused_because_a_run_of_a_paused_one_waits_for_ever(dag: DAG) -> None:
    assert dag.is_paused_upon_creation is False
    assert dag.catchup is False
    assert "weir" in dag.tags


def test_tags_say_what_a_dag_is_about_who_starts_it_and_whether_it_can_be_undone(dag: DAG) -> None:
    about = dag.tags & {"streams", "reader groups", "data", "upkeep"}
    started = dag.tags & {"manual", "periodic"}
    assert len(about) == len(started) == 1
    assert dag.tags == {"weir", *about, *started, *(dag.tags & {"irreversible"})}
    if dag.dag_id.startswith(("weir_delete_", "weir_truncate_", "weir_seal_", "weir_erase")):
        assert "irreversible" in dag.tags


def test_a_form_opens_with_the_few_fields_that_people_fill_in(dag: DAG) -> None:
    job = dag.dag_id.removeprefix("weir_")
    shown = {one.name: one.metadata["shown"] for one in fields(FORMS[job])}
    in_sections = [name for name, how in shown.items() if "section" in how]
    open_at_first = [name for name in dag.params if name not in in_sections]
    assert len(open_at_first) <= 4, open_at_first
    for name in dag.params:
        param = dag.params.get_param(name)
        assert ("section" in param.schema) == (name in in_sections)
        assert param.has_value or name in open_at_first, "what is required is collapsed"


def test_every_example_is_one_that_its_field_takes() -> None:
    shown = set()
    for job in FORMS:
        for name, param in form(job).items():
            for example in param.schema.get("examples", []):
                # Of a list Airflow's page makes a choice among the examples.
                assert "array" not in param.schema["type"], name
                shown.add(name)
                param.resolve(example)
    assert {"start", "cut", "retain_max_age", "batch_bytes", "date_format"} <= shown


def test_a_dag_is_retried_with_growing_pauses(task: WeirJobOperator) -> None:
    assert task.retries >= 2
    assert task.retry_delay > timedelta(0)
    assert task.retry_exponential_backoff
    assert task.max_retry_delay is not None
    assert task.max_retry_delay <= timedelta(minutes=10)


def test_a_dag_explains_itself(dag: DAG) -> None:
    module = import_module(f"spark_jobs.{dag.dag_id.removeprefix('weir_')}")
    assert dag.doc_md == f"### {module.__doc__}"
    title, *rest = dag.doc_md.strip().split("\n\n")
    assert re.fullmatch(r"### [A-Z][^\n]*\.", title)
    assert rest[-1].startswith("**On failure.** ")
    assert rest[-1].endswith(".")
    if dag.dag_id in MANUAL:
        assert rest[0].startswith("**Parameters.** ")
    else:
        assert len(rest) >= 2, "what a run does is not said"


def test_a_task_shows_the_code_that_it_runs(task: WeirJobOperator) -> None:
    path = JOBS / f"{task.job}.py"
    said, code = str(task.doc_md).split("```python\n")
    assert said == f"Runs `spark_jobs/{task.job}.py`:\n\n"
    assert code.removesuffix("```\n") in path.read_text()
    assert code.startswith("def run(job: Job, ")


@pytest.mark.parametrize("name", sorted(PERIODIC))
def test_a_periodic_dag_runs_by_itself_one_run_at_a_time(bag: BundleDagBag, name: str) -> None:
    dag = bag.dags[name]
    assert dag.max_active_runs == 1
    assert "periodic" in dag.tags
    (task,) = dag.tasks
    assert task.pool == "weir"
    assert task.execution_timeout is not None
    assert dag.dagrun_timeout is not None
    assert task.execution_timeout <= dag.dagrun_timeout <= timedelta(hours=6)
    dag.params.validate()  # the scheduler fills in no form


@pytest.mark.parametrize("name", sorted(MANUAL))
def test_a_manual_dag_runs_when_its_form_was_filled_in(bag: BundleDagBag, name: str) -> None:
    dag = bag.dags[name]
    assert dag.schedule is None
    assert "manual" in dag.tags
    required = {name for name in dag.params if not dag.params.get_param(name).has_value}
    assert required == MANUAL[name]


def test_a_form_describes_every_field(dag: DAG) -> None:
    names = list(FORMS[dag.dag_id.removeprefix("weir_")].__dataclass_fields__)
    assert list(dag.params) == names
    titles = [dag.params.get_param(name).schema["title"] for name in names]
    assert len(set(titles)) == len(titles), "two fields of one title"
    for name in names:
        schema = dag.params.get_param(name).schema
        [kind] = (
            {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"]) - {"null"}
        )
        assert kind in {"string", "integer", "number", "boolean", "array", "object"}
        assert schema["title"][0].isupper()
        description = dag.params.get_param(name).description
        assert description
        assert description.endswith(".")
        if kind == "array":  # else it is a field for JSON
            assert schema["items"].get("type", "string") == "string"


def test_defaults_are_the_careful_choice(dag: DAG) -> None:
    defaults: dict[str, Any] = dag.params.dump()
    for name in SAFE.keys() & defaults.keys():
        assert defaults[name] in (SAFE[name], "unchanged"), name
