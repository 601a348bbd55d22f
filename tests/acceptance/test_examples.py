"""The example DAGs run in an Airflow that has them, and do what their pages say."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.acceptance.asking import path_of, until
from weir.errors import NotFound
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation
from weir.local.throw_away import reaped
from weir.settings import Settings

pytestmark = [pytest.mark.release, pytest.mark.timeout(900)]
HOURS = "example_hours_with_late_data"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation as `make up EXAMPLES=1` starts it."""
    folder = tmp_path_factory.mktemp("weir")
    (folder / "weir.toml").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEIR_CONFIG", str(folder / "weir.toml"))
        found = Installation(folder / "state", durable=False, examples=True)
        with reaped(found.postgres, found.state):
            try:
                found.start()
                yield found
            finally:
                found.stop()
                found.postgres.remove()


@pytest.fixture
def api(installation: Installation) -> AirflowApi:
    return installation.airflow.api()


def runs(api: AirflowApi, dag: str) -> list[dict[str, Any]]:
    """The runs of a DAG in the order in which they began; none may have failed."""
    try:
        found: list[dict[str, Any]] = api.get(f"/dags/{dag}/dagRuns?order_by=run_after")["dag_runs"]
    except NotFound:  # Airflow has not read its file yet
        return []
    for one in found:
        assert one["state"] != "failed", api.failure(dag, one["dag_run_id"])
    return found


def returned(api: AirflowApi, dag: str, run: str, task: str) -> Any:
    path = f"{path_of(dag, run, task)}/xcomEntries/return_value"
    return api.get(f"{path}?deserialize=true")["value"]


def test_an_hour_is_appended_put_into_a_table_and_computed_again_for_late_orders(
    installation: Installation, api: AirflowApi, settings: Settings
) -> None:
    first = until("Airflow's own first run", lambda: runs(api, "example_folder_each_hour"))[0]
    assert api.wait("example_folder_each_hour", first["dag_run_id"]) == "success"
    hour = datetime.fromisoformat(first["data_interval_start"])
    key = f"{hour:%Y-%m-%dT%H:%M:%S}"

    def totals() -> list[dict[str, Any]]:
        done = [one["dag_run_id"] for one in runs(api, HOURS) if one["state"] == "success"]
        return [returned(api, HOURS, run, "total") for run in done]

    until("the hour", lambda: [one for one in totals() if one["hour"] == key])
    found = next(one for one in totals() if one["hour"] == key)
    assert (found["orders"], found["amount"], found["late"]) == (59, 59 * 60 / 2 * 1.5, 0)

    # The hour before comes now: all of it is late, and so is its first order, of one hour earlier.
    before = hour - timedelta(hours=1)
    run = api.post(
        "/dags/example_folder_each_hour/dagRuns",
        {"logical_date": (hour + timedelta(minutes=1)).isoformat()},
    )["dag_run_id"]
    assert api.wait("example_folder_each_hour", run) == "success"
    again = f"{before:%Y-%m-%dT%H:%M:%S}"
    until(
        "the late ones", lambda: [one for one in totals() if one["hour"] == again and one["late"]]
    )
    [late] = [one for one in totals() if one["hour"] == again and one["late"]]
    assert (late["orders"], late["late"]) == (60, 59)
    written = Path(settings.output_roots[0]) / "example_hours" / f"{before:%Y-%m-%dT%H}.csv"
    assert next(csv.DictReader(written.open()))["orders"] == "60"

    def in_table() -> set[str]:  # as `make psql` shows it
        asked = "SET ROLE weir_reader; SELECT order_id FROM example.orders"
        return set(installation.postgres.psql(asked, "weir").split())

    with weir.open(settings=settings) as store:
        expected = set(store.read("example/orders")["order_id"].to_pylist())
    assert len(expected) in (120, 180), "or an hour has ended meanwhile"
    until("all orders in the table", lambda: in_table() >= expected)
    assert runs(api, "example_table_by_asset")


def test_they_are_there_until_somebody_says_otherwise(
    installation: Installation, api: AirflowApi
) -> None:
    state = json.loads((installation.state / "stack.json").read_text())
    assert state["examples"]
    assert Installation(installation.state).airflow.examples
    without = Installation(installation.state, durable=False, examples=False)
    without.start()
    environ = without.airflow.environment()
    assert "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST" not in environ
    until("the end of them", lambda: not without.airflow.api().get("/dags?tags=example")["dags"])
