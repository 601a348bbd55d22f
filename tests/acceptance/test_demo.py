"""The first half of the demo, on a slice of its input, through a real Airflow; then the same stack
refuses bad input, keeps its secrets, and runs its periodic DAGs. test_whole_demo.py goes on."""

import json
import os
import re
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flights import checks, reference
from flights.demo import DELAYS, DEPARTURES, FLIGHTS, Story, Told
from flights.report import Views
from flights.runs import Ended, Run, Runs
from tests.acceptance.conftest import EVERY
from tests.raises import raises
from weir.database.connection import Database
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation
from weir.operations.jobs import ACTIONS

PERIODIC = (
    "weir_stream_cuts",
    "weir_checkpoints",
    "weir_adjunct",
    "weir_retention",
    "weir_upkeep",
    "weir_scale",
    "weir_audit",
)
PROCESS = {
    "reader_group": "delays",
    "function": "flights.delays:partial_statistics",
    "outputs": [f"stream:{DELAYS}"],
}


pytestmark = pytest.mark.timeout(1800)  # the first test waits for the whole story


@pytest.fixture(scope="module")
def story(installation: Installation) -> Story:
    return Story(installation, every=EVERY)


@pytest.fixture(scope="module")
def told(story: Story) -> Told:
    """The first half of the demo, told."""
    return story.tell(whole=False)


# ---- the story -----------------------------------------------------------------------------------


def test_all_checks_of_the_demo_hold(told: Told) -> None:
    assert len(told.checks) >= 12
    assert [str(check) for check in told.checks if not check.ok] == []


def test_the_report_shows_epochs_counts_groups_and_scales(told: Told, story: Story) -> None:
    flights = story.input.rows(1, 6)
    for expected in ("0 (create)", "1 (scale)", f"{flights:,}", "on disk", "audit", "waiting"):
        assert expected in told.report
    for picture in told.pictures:
        assert "epoch 1" in picture.read_text()
    assert "more events per second than" in told.report


def test_the_checks_fail_on_what_was_really_received_if_it_is_damaged(
    told: Told, story: Story
) -> None:
    trace = story.views.output("delays", "received", story.output)
    flights = story.input.flights[story.input.flights["month"] <= 6]
    assert checks.order_per_key(flights, trace).ok
    key = trace["tailnum"].value_counts().index[0]
    a, b = trace.index[trace["tailnum"] == key][:2]
    swapped = trace.copy()
    swapped.loc[[a, b], ["batch", "received"]] = trace.loc[[b, a], ["batch", "received"]].values
    assert not checks.order_per_key(flights, swapped).ok
    assert not checks.offsets_in_order(swapped).ok
    assert not checks.each_flight_once(flights, trace.drop(a)).ok
    assert not checks.offsets_in_order(trace.drop(a)).ok


def test_the_reader_login_may_change_nothing(told: Told, story: Story) -> None:
    for statement in ("UPDATE weir_internal.stream SET scope = scope", "DELETE FROM weir.streams",
                      "DELETE FROM weir_internal.job_run", "CREATE TABLE t ()",
                      "SELECT weir_internal.begin_compaction(1, 60)"):  # fmt: skip
        with pytest.raises(Exception, match=r"permission denied|cannot delete"):
            story.views.rows(statement)


# ---- bad input -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    """A form that must be refused by the job, and what the sentence must say."""

    dag: str
    form: dict[str, Any]
    says: str


# One that is refused before a job is submitted, one by a job without a Spark session, and one by a
# job with a session; tests/spark/test_bad_input.py has all kinds, in this process.
REFUSED = {
    "argument that no form has": Refused(
        "weir_ingest", {"stream": FLIGHTS, "files": ["flights"], "bogus": 1},
        r"there is no argument 'bogus'"),
    "expression that runs code": Refused(
        "weir_create_stream",
        {"stream": "nyc/evil", "routing_key": "java_method('java.lang.System', 'getenv')"},
        r"calls java_method\(\), which is not allowed"),
    "column of another type": Refused(
        "weir_ingest", {"stream": FLIGHTS, "files": ["bad/distance.parquet"]},
        r"column 'distance' is string, but long in stream nyc/flights"),
}  # fmt: skip


def state_of(views: Views, warehouse: Path) -> dict[str, Any]:
    """Everything that a refused run must not have changed."""
    queries = (
        "SELECT stream, current_epoch, head::text, tail::text, events_appended FROM streams",
        "SELECT reader_group, stream, segment, state, next_offset, reader_id FROM positions",
        "SELECT reader_group, batch_id, state, attempt FROM batches",
        "SELECT stream, transaction_number FROM transactions WHERE state IN ('open', 'committed')",
        "SELECT stream, path FROM data_files",
        "SELECT reader_group FROM readers",
    )
    return {sql: sorted(map(tuple, views.rows(sql)), key=str) for sql in queries}


@contextmanager
def at_rest(api: AirflowApi) -> Iterator[None]:
    """Nothing runs by itself meanwhile: retention would truncate, at its half hour."""
    end = time.monotonic() + 240
    try:
        _pause(api, PERIODIC, True)
        # Airflow starts no more tasks of a paused DAG, so what has begun ends unpaused.
        while running := [dag for dag in PERIODIC if _runs(api, dag)]:
            _pause(api, running, False)
            while any(_runs(api, dag) for dag in running):
                assert time.monotonic() < end, [_runs(api, dag) for dag in running]
                time.sleep(0.5)
            _pause(api, running, True)
        yield
    finally:
        _pause(api, PERIODIC, False)


def _pause(api: AirflowApi, dags: Iterable[str], paused: bool) -> None:
    for dag in dags:
        api.patch(f"/dags/{dag}", {"is_paused": paused})


def _runs(api: AirflowApi, dag: str) -> list[dict[str, Any]]:
    """The running runs of a DAG, with the states of their tasks."""
    runs = api.get(f"/dags/{dag}/dagRuns?state=running")["dag_runs"]
    return [{**run, "tasks": api.tasks(dag, run["dag_run_id"])} for run in runs]


@pytest.fixture(scope="module")
def refused(installation: Installation, story: Story, told: Told) -> dict[str, Ended]:
    """All bad forms sent at the same time, and how their runs ended."""
    bad = Path(installation.state / "input" / "bad")
    bad.mkdir()
    pq.write_table(pa.table({"tailnum": ["N1"], "distance": ["far"]}), bad / "distance.parquet")
    api = installation.airflow.api()
    runs = Runs(api, story.database, print)
    bad_runs = [Run(r.dag, r.form, what, fails=True) for what, r in REFUSED.items()]
    with at_rest(api):
        before = state_of(story.views, story.warehouse)
        ended = runs.together(*bad_runs)
        assert state_of(story.views, story.warehouse) == before
    return dict(zip(REFUSED, ended, strict=True))


@pytest.mark.parametrize("what", REFUSED)
def test_bad_input_is_refused_with_one_sentence(
    installation: Installation, refused: dict[str, Ended], what: str
) -> None:
    expected, ended = REFUSED[what], refused[what]
    log = installation.airflow.api().failure(expected.dag, ended.run_id, lines=200)
    # What was refused before a job was submitted is in the log only.
    sentence = ended.error or re.search(r"AirflowFailException: (.*)", log)[1]  # type: ignore[index]  # else it fails
    assert re.search(expected.says, sentence, re.DOTALL), sentence
    assert "\n" not in sentence
    assert re.search(r"\. \[[a-z_]+\]$", sentence), "a sentence and its code, not a repr"
    assert log.splitlines()[-1] == sentence
    assert "GitWildMatchPattern" not in log
    tasks = installation.airflow.api().tasks(expected.dag, ended.run_id)
    tries = {task["try_number"] for task in tasks if task["state"] == "failed"}
    assert tries == {1}, "it would fail the same way again"


def test_what_refused_appends_wrote_is_deleted(
    installation: Installation, refused: dict[str, Ended], story: Story
) -> None:
    runs = Runs(installation.airflow.api(), story.database, print)
    runs.together(Run("weir_upkeep", {}, "delete what is dead"))
    listed = [row.path for row in story.views.rows("SELECT path FROM data_files")]
    listed += reference.files(story.jobs_login)
    # Upkeep has put small files together, and keeps those that it has replaced for a week.
    kept = "SELECT path FROM garbage_files WHERE reason = 'compacted'"
    replaced = [row.path for row in story.views.rows(kept)]
    assert str(checks.files_are_those_listed(story.warehouse, listed, replaced)).startswith("ok")


@pytest.mark.parametrize(
    ("dag", "form"),
    [
        ("weir_ingest", {"stream": "nyc/../flights", "files": ["flights"]}),
        ("weir_ingest", {"stream": "nyc/fl'ights", "files": ["flights"]}),
        ("weir_ingest", {"stream": FLIGHTS, "files": []}),
        ("weir_ingest", {"stream": FLIGHTS, "files": ["flights"], "format": "exe"}),
        ("weir_ingest", {"files": ["flights"]}),
        ("weir_create_stream", {"stream": "../x", "routing_key": "a"}),
        ("weir_create_stream", {"stream": 'a/"b"', "routing_key": "a"}),
        ("weir_create_stream", {"stream": "a/b", "routing_key": "a", "segments": 0}),
        ("weir_create_stream", {"stream": f"{DEPARTURES}.rejected", "routing_key": "a"}),
        ("weir_create_reader_group", {"reader_group": "a'b", "streams": [FLIGHTS]}),
        ("weir_create_reader_group", {"reader_group": "ab", "streams": ["../x"]}),
        ("weir_scale_stream", {"stream": FLIGHTS, "segments": ["0.0; DROP TABLE"]}),
        ("weir_scale_stream", {"stream": FLIGHTS, "segments": ["0.0"], "boundaries": [2.0]}),
        ("weir_checkpoint_reader_group", {"reader_group": "delays", "name": "../x'"}),
        ("weir_truncate_stream", {"stream": FLIGHTS}),
        ("weir_process", PROCESS | {"function": "flights.delays:partial_statistics;import os"}),
        ("weir_process", PROCESS | {"outputs": ["file:/etc/passwd"]}),
        ("weir_process", PROCESS | {"reader_group": "../delays"}),
    ],
)
def test_forms_refuse_what_cannot_be_right(
    installation: Installation, dag: str, form: dict[str, Any]
) -> None:
    api = installation.airflow.api()
    api.get(f"/dags/{dag}")
    before = api.get(f"/dags/{dag}/dagRuns?limit=1")["total_entries"]
    with raises("airflow_refused"):
        api.trigger(dag, form)
    assert api.get(f"/dags/{dag}/dagRuns?limit=1")["total_entries"] == before


# ---- the platform --------------------------------------------------------------------------------


def test_airflow_loads_everything_without_an_error(installation: Installation, told: Told) -> None:
    api = installation.airflow.api()
    assert api.get("/importErrors")["import_errors"] == []
    assert api.get("/plugins/importErrors")["import_errors"] == []
    assert "weir" in [plugin["name"] for plugin in api.get("/plugins")["plugins"]]
    wanted = {f"weir_{action}" for action in [*ACTIONS, "partitions"]}
    assert {dag["dag_id"] for dag in api.get("/dags?limit=100")["dags"]} == wanted


@pytest.mark.parametrize("dag", PERIODIC)
def test_periodic_dags_are_unpaused_and_scheduled(
    installation: Installation, told: Told, dag: str
) -> None:
    found = installation.airflow.api().get(f"/dags/{dag}/details")
    assert found["is_paused"] is False
    assert found["timetable_summary"]
    assert found["next_dagrun_run_after"]
    assert found["catchup"] is False
    assert found["max_active_runs"] == 1


def test_every_dag_says_what_it_does_and_every_field_what_it_means(
    installation: Installation, told: Told
) -> None:
    api = installation.airflow.api()
    for dag in api.get("/dags?limit=100")["dags"]:
        details = api.get(f"/dags/{dag['dag_id']}/details")
        assert "On failure" in details["doc_md"]
        for name, param in (details["params"] or {}).items():
            described = param.get("description") or param["schema"].get("description")
            assert described, f"{dag['dag_id']}: {name}"


def test_a_viewer_may_look_but_not_trigger(installation: Installation, told: Told) -> None:
    viewer = installation.airflow.api("viewer")
    assert viewer.get("/dags/weir_retention")["dag_id"] == "weir_retention"
    for dag in ("weir_retention", "weir_ingest"):
        with raises("airflow_refused 403"):
            viewer.trigger(dag, {"stream": FLIGHTS, "files": ["flights"]})
    with raises("airflow_refused 403"):
        viewer.patch("/dags/weir_retention", {"is_paused": True})


def test_no_secret_is_in_a_log_or_in_a_table(
    installation: Installation, told: Told, refused: dict[str, Ended]
) -> None:
    secrets = set(json.loads((installation.state / "secrets.json").read_text()).values())
    secrets |= set(json.loads(installation.airflow.passwords_file.read_text()).values())
    secrets |= {line.rsplit(":", 1)[1] for line in
                (installation.state / "pgpass").read_text().splitlines()}  # fmt: skip
    assert len(secrets) >= 8
    places = {
        str(path): path.read_text(errors="replace")
        for folder in (installation.state / "airflow" / "logs", installation.state / "logs")
        for path in folder.rglob("*.log")
    }
    assert sum("task_id=" in path for path in places) > 12
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


def test_jobs_are_submitted_with_the_name_of_the_database_only(
    installation: Installation, told: Told
) -> None:
    submits = [
        line
        for path in (installation.state / "airflow" / "logs").rglob("attempt=1.log")
        for line in path.read_text().splitlines()
        if "spark-submit" in line
    ]
    assert submits
    assert not [line for line in submits if re.search("password|postgres(ql)?://", line, re.I)]
    assert "PGPASSWORD" not in os.environ


def test_reports_come_back_to_airflow(installation: Installation, told: Told) -> None:
    """A job's report is its task's XCom, and the same as in the view job_runs."""
    api = installation.airflow.api()
    database = Database(
        installation.postgres.dsn("weir", "weir_view"), patience=10.0, connect_patience=10.0
    )
    rows = Views(database).rows(
        "SELECT * FROM job_runs WHERE dag_id = 'weir_process' AND state = 'succeeded'"
    )
    database.dispose()
    [row] = rows
    run = urllib.parse.quote(row.run_id, "")
    task = f"/dags/{row.dag_id}/dagRuns/{run}/taskInstances/{row.task_id}"
    path = f"{task}/xcomEntries/return_value?map_index={row.map_index}&stringify=false"
    assert api.get(path)["value"] == row.report
