"""The demo on a slice of its input, by the DAGs of an Airflow of its own; then the same stack
refuses bad input in jobs, and deletes what that has written."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flights import checks, reference
from flights.demo import FLIGHTS, Story, Told
from flights.report import Views
from flights.runs import Ended, Run, Runs
from tests.acceptance.conftest import EVERY, PERIODIC, begun, environment
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation

pytestmark = [pytest.mark.timeout(2400), pytest.mark.release]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with begun(tmp_path_factory.mktemp("weir")) as installation, environment(installation):
        yield installation


@pytest.fixture(scope="module")
def story(installation: Installation) -> Story:
    return Story(installation, every=EVERY)


@pytest.fixture(scope="module")
def told(story: Story) -> Told:
    return story.tell()


def test_all_checks_of_the_whole_demo_hold_and_its_report_shows_what_happened(
    told: Told, story: Story
) -> None:
    assert len(told.checks) >= 21
    assert [str(check) for check in told.checks if not check.ok] == []
    flights = len(story.input.flights)
    for expected in (f"{flights:,}", "retained", "events truncated", "cold neighbours"):
        assert expected in told.report
    assert len(told.pictures) == 2
    for picture in told.pictures:
        assert '"marks": [{' in picture.read_text()
    batches = "SELECT count(*) FROM batches WHERE state = 'committed'"
    assert story.views.number(batches) >= 3
    parts = story.views.output("delays", "delays", story.output)
    assert parts.groupby(["carrier", "day"])["batch"].nunique().max() > 1, "are added up"


@dataclass(frozen=True)
class Refused:
    """A form that must be refused by the job, and what the sentence must say."""

    dag: str
    form: dict[str, Any]
    says: str


# One that is refused before a job is submitted, one by a job without a Spark session, and one by a
# job with a session; tests/inputs/test_bad_input.py has all kinds, in this process.
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
