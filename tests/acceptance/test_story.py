"""One story in a real Airflow: a form that a person fills in, DAGs that the scheduler starts by
itself and by what a program appends, a task that is killed, and an approval. Then the same stack
refuses bad input and keeps its secrets."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

import weir
from tests.acceptance.asking import answer, path_of, question, until
from tests.acceptance.browser import browser
from tests.acceptance.conftest import settings_of
from tests.raises import raises
from tests.world.streams import rows
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation
from weir.operations.jobs import ACTIONS
from weir.programs.store import StreamStore

pytestmark = pytest.mark.timeout(900)
ORDERS = "story/orders"
# The second hangs until it is let go: so it can be killed in the middle.
DAGS = """
import os
import time
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, task
from weir.airflow import CreateReaderGroupOperator, stream_asset

FOLDER = Path({folder!r})

with DAG("story_begin", schedule="@once", start_date=datetime(2026, 1, 1)):
    CreateReaderGroupOperator(task_id="group", reader_group="story", streams=["story/orders"])

with DAG("story_read", schedule=[stream_asset("story/orders")], max_active_runs=1):

    @task.weir_process(reader_group="story", outputs=["parquet:story"], retry_delay=0.1)
    def totals(events):
        (FOLDER / "process").write_text(str(os.getpid()))
        while not (FOLDER / "go on").exists():
            time.sleep(0.1)
        return events

    totals()
"""


@dataclass
class World:
    """The installation, as its administrator and a program see it."""

    installation: Installation
    api: AirflowApi
    store: StreamStore

    def run(self, dag: str) -> str:
        """Wait for a run that the scheduler starts, and return its id."""
        found = until(f"a run of {dag}", lambda: self.api.get(f"/dags/{dag}/dagRuns")["dag_runs"])
        return str(found[0]["dag_run_id"])


@pytest.fixture(scope="module")
def world(installation: Installation) -> Iterator[World]:
    api = installation.airflow.api()
    # Airflow reads the files of DAGs some seconds after it has started.
    until("all DAGs", lambda: api.get("/dags?limit=1")["total_entries"] > len(ACTIONS))
    with weir.open(settings=settings_of(installation)) as store:
        yield World(installation, api, store)


@pytest.fixture(scope="module")
def made(world: World) -> str:
    """Let a person make the stream of the story by the form; return the run's id."""
    with browser(world.installation, "admin") as ui:
        ui.see_dags()
        form = ui.form("weir_create_stream")
        form.fill("Stream", "Orders")
        expect(form.trigger_button).to_be_disabled()
        form.fill("Routing key", "customer")
        form.trigger_button.click()
        expect(form.dialog).to_contain_text("Invalid input for param stream: 'Orders'")
        expect(form.dialog).to_contain_text("a stream's name, scope/stream")
        form.close()
        run = ui.succeed("weir_create_stream", {"Stream": ORDERS, "Routing key": "customer"})
        ui.expect_in_log("weir_create_stream", run, "create_stream", ORDERS)
    return run


@pytest.fixture(scope="module")
def killed(world: World, made: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Append what starts a DAG, and kill its task in the middle; return what its log said then."""
    folder = tmp_path_factory.mktemp("story")
    state = world.installation.state
    (state.parent / "dags" / "story.py").write_text(DAGS.format(folder=str(folder)))
    assert world.api.wait("story_begin", world.run("story_begin")) == "success"
    until("its watch", lambda: rows(world.store.database, "SELECT FROM watch"))
    world.store.append(ORDERS, [{"customer": f"c{n}", "amount": n} for n in range(20)])
    until("the task", lambda: (folder / "process").exists())
    run = world.run("story_read")
    said = world.api.task_log("story_read", run, "totals")
    psutil.Process(int((folder / "process").read_text())).kill()
    (folder / "go on").touch()
    assert world.api.wait("story_read", run) == "success"
    return said


@pytest.fixture(scope="module")
def refused(world: World, killed: str) -> str:
    """Ask for an append of a file that does not fit; return the run's id."""
    wrong = pa.table({"customer": ["ann"], "amount": ["much"]})
    pq.write_table(wrong, world.installation.state / "input" / "wrong.parquet")
    run = world.api.trigger("weir_ingest", {"stream": ORDERS, "files": ["wrong.parquet"]})
    assert world.api.wait("weir_ingest", run) == "failed"
    return run


def test_a_person_makes_a_stream_by_a_form(world: World, made: str) -> None:
    [stream] = rows(world.store.database, "SELECT stream, routing_key FROM streams")
    assert tuple(stream) == (ORDERS, "customer")


def test_an_append_starts_a_dag_whose_task_is_killed_and_delivers_each_event_once(
    world: World, killed: str
) -> None:
    [task] = world.api.tasks("story_read", world.run("story_read"))
    assert task["try_number"] == 2
    [batch] = rows(world.store.database, "SELECT state, attempt FROM batches")
    assert tuple(batch) == ("committed", 2)
    paths = rows(world.store.database, "SELECT path FROM parquet_outputs")
    found = [n for one in paths for n in pq.read_table(one.path)["amount"].to_pylist()]
    assert sorted(found) == list(range(20))


def test_the_log_of_a_task_is_shown_while_it_runs(world: World, killed: str) -> None:
    assert "Could not read served logs" not in killed
    port = world.installation.airflow._stack()["ports"]["log"]
    assert f"http://127.0.0.1:{port}/log/dag_id=" in killed


def test_bad_input_is_refused_by_its_job_with_one_sentence_and_not_tried_again(
    world: World, refused: str
) -> None:
    [job] = rows(world.store.database, "SELECT error FROM job_runs WHERE run_id = :r", r=refused)
    assert f"column 'amount' is string, but long in stream {ORDERS}" in job.error
    assert re.search(r"\. \[[a-z_]+\]$", job.error), "a sentence and its code, not a repr"
    log = world.api.failure("weir_ingest", refused, lines=200)
    assert log.splitlines()[-1] == job.error
    assert "GitWildMatchPattern" not in log
    assert [one["try_number"] for one in world.api.tasks("weir_ingest", refused)] == [1]
    assert world.store.count(ORDERS) == 20


def test_what_loses_data_waits_for_a_person_who_may_approve_it(world: World, refused: str) -> None:
    form = {"stream": ORDERS, "cut": "tail", "dry_run": False}
    viewer = world.installation.airflow.api("viewer")
    dag, task = "weir_truncate_stream", "truncate_stream"
    run = world.api.trigger(dag, form)
    assert f"would truncate 20 events of stream {ORDERS}" in question(world.api, dag, run, task)
    path = path_of(dag, run, task)
    with raises("airflow_refused 403"):
        answer(viewer, path)
    with raises("airflow_refused 403"):
        viewer.post(f"/dags/{dag}/clearTaskInstances", {"dag_run_id": run, "dry_run": False})
    assert world.store.count(ORDERS) == 20
    answer(world.api, path)
    assert world.api.wait(dag, run) == "success"
    assert world.store.count(ORDERS) == 0


def test_airflow_loads_everything_without_an_error(world: World) -> None:
    api = world.api
    assert api.get("/importErrors")["import_errors"] == []
    assert api.get("/plugins/importErrors")["import_errors"] == []
    assert "weir" in [plugin["name"] for plugin in api.get("/plugins")["plugins"]]
    wanted = {f"weir_{action}" for action in [*ACTIONS, "partitions"]}
    found = api.get("/dags?limit=100&dag_id_pattern=weir_")["dags"]
    assert {dag["dag_id"] for dag in found} == wanted


def test_a_viewer_may_look_but_not_trigger(world: World) -> None:
    viewer = world.installation.airflow.api("viewer")
    assert viewer.get("/dags/weir_retention")["dag_id"] == "weir_retention"
    for dag in ("weir_retention", "weir_ingest"):
        with raises("airflow_refused 403"):
            viewer.trigger(dag, {"stream": ORDERS, "files": ["flights"]})
    with raises("airflow_refused 403"):
        viewer.patch("/dags/weir_retention", {"is_paused": True})


def test_no_secret_is_in_a_log_or_in_a_table(world: World, refused: str) -> None:
    installation = world.installation
    secrets = set(json.loads((installation.state / "secrets.json").read_text()).values())
    secrets |= set(json.loads(installation.airflow.passwords_file.read_text()).values())
    secrets |= {line.rsplit(":", 1)[1] for line in
                (installation.state / "pgpass").read_text().splitlines()}  # fmt: skip
    assert len(secrets) >= 8
    places = {
        str(path): path.read_text(errors="replace")
        for folder in (
            installation.state / "airflow" / "logs",
            installation.state / "logs",
        )
        for path in folder.rglob("*.log")
    }
    assert sum("task_id=" in path for path in places) >= 5
    places["server.log"] = (installation.postgres.home / "server.log").read_text(errors="replace")
    for database, table in (
        ("weir", "weir_internal.job_run"), ("weir", "weir_internal.request"),
        ("weir", "weir_internal.transaction"),
        ("airflow", "xcom"), ("airflow", "rendered_task_instance_fields"), ("airflow", "dag_run"),
        ("airflow", "log"), ("airflow", "serialized_dag"), ("airflow", "task_instance"),
    ):  # fmt: skip
        places[table] = installation.postgres.psql(f"SELECT t.* FROM {table} t", database)
        assert places[table] or table == "xcom"
    found = [(place, secret[:4]) for place, text in places.items()
             for secret in secrets if secret in text]  # fmt: skip
    assert found == []


def test_jobs_are_submitted_with_the_name_of_the_database_only(world: World, made: str) -> None:
    submits = [
        line
        for path in (world.installation.state / "airflow" / "logs").rglob("attempt=1.log")
        for line in path.read_text().splitlines()
        if "spark-submit" in line
    ]
    assert submits
    assert not [line for line in submits if re.search("password|postgres(ql)?://", line, re.I)]
    assert "PGPASSWORD" not in os.environ


def test_reports_come_back_to_airflow(world: World, made: str) -> None:
    """A job's report is its task's XCom, and the same as in the view job_runs."""
    [row] = rows(world.store.database, "SELECT * FROM job_runs WHERE run_id = :r", r=made)
    task = path_of(row.dag_id, made, row.task_id)
    path = f"{task}/xcomEntries/return_value?map_index={row.map_index}&stringify=false"
    assert world.api.get(path)["value"] == row.report
