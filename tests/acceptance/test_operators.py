"""Operators and decorators in a DAG of one's own, under the real scheduler: what is retried, mapped
or cleared is done once. The connection's button, as its form asks."""

import json
import os
import textwrap
import time
import urllib.error
import urllib.request
from dataclasses import replace
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

import weir
from tests.world.streams import rows
from weir.local.installation import Installation
from weir.settings import Settings, load

pytestmark = [pytest.mark.timeout(600), pytest.mark.release]
DAG = """
import pyarrow.compute as pc
from airflow.sdk import DAG, task
from weir.airflow import CheckpointOperator, CreateReaderGroupOperator, CreateStreamOperator

with DAG("mine", schedule=None, catchup=False):
    stream = CreateStreamOperator(task_id="stream", stream="mine/numbers", routing_key="n")
    group = CreateReaderGroupOperator(
        task_id="group", reader_group="mine", streams=["mine/numbers"]
    )

    @task.weir_append(stream="mine/numbers", retry_delay=0.1)
    def numbers(n, ti=None):
        if n == 2 and ti.try_number == 1:
            raise ValueError("not now")
        return [{"n": n}, {"n": n + 10}]

    @task.weir_process(reader_group="mine", outputs=["parquet:mine"], conn_id="weir_mine")
    def large(events, at_least):
        return events.filter(pc.field("n") >= at_least)

    done = CheckpointOperator(task_id="done", reader_group="mine", name="after {{ run_id[:25] }}")
    stream >> group >> numbers.expand(n=[1, 2, 3]) >> large(at_least=3) >> done
"""


@pytest.fixture
def settings(installation: Installation) -> Settings:
    found = load(dict(os.environ) | installation.environment())
    return replace(found, database=installation.postgres.dsn("weir", "weir_app"))


def test_a_dag_of_ones_own_does_each_thing_once_though_it_is_retried_and_cleared(
    installation: Installation, settings: Settings
) -> None:
    api = installation.airflow.api()
    fields = {"database": settings.database, "warehouse": settings.warehouse,
              "output_roots": list(settings.output_roots)}  # fmt: skip
    connection = {"connection_id": "weir_mine", "conn_type": "weir", "extra": json.dumps(fields)}
    tested = api.post("/connections/test", connection)
    assert tested["status"], tested["message"]
    assert "may" not in tested["message"].partition("rights: ")[2].split(".")[0]
    api.post("/connections", connection)
    wrong = api.post("/connections/test", {**connection, "extra": json.dumps({"warehouse": "/w"})})
    assert (wrong["status"], "[argument_missing]" in wrong["message"]) == (False, True)

    (installation.state.parent / "dags/mine.py").write_text(textwrap.dedent(DAG))
    begun = time.monotonic()
    run = api.trigger("mine")
    assert api.wait("mine", run) == "success"
    print(f"seven tasks without a JVM took {time.monotonic() - begun:.1f} s")
    path = f"/dags/mine/dagRuns/{quote(run)}/taskInstances"
    tries = {(one["task_id"], one["map_index"]): one["try_number"]
             for one in api.get(path)["task_instances"]}  # fmt: skip
    assert tries["numbers", 1] == 2
    _check(settings, [3, 11, 12, 13])
    logs = installation.state / "airflow/logs/dag_id=mine" / f"run_id={run}"
    log = (logs / "task_id=done/attempt=1.log").read_text().splitlines()
    shown = [line for one in log if (line := json.loads(one)["event"]) != "::endgroup::"]
    said = f"reader group mine has checkpoint 'after {run[:25]}'; what lies before it is released"
    assert shown[-1] == said, "a log ends with its sentence"

    links = api.get(f"{path}/done/links")["extra_links"]
    assert links["Weir: stream or group"].endswith("/weir/group?name=mine")
    assert _status(links["Weir: report"]) == 200, "a page, which has no data in it"
    data = links["Weir: report"].replace("/weir/run?dag_id=mine&", "/weir/api/runs/mine?")
    assert data != links["Weir: report"]
    assert _status(data) == 401, "nobody is logged in"

    api.post("/dags/mine/clearTaskInstances", {"dag_run_id": run, "dry_run": False,
             "only_failed": False, "reset_dag_runs": True})  # fmt: skip
    assert api.wait("mine", run) == "success"
    _check(settings, [3, 11, 12, 13])


def _status(url: str) -> int:
    """The status of a page, asked for without a login."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _check(settings: Settings, large: list[int]) -> None:
    with weir.open(settings=settings) as store:
        assert sorted(store.read("mine/numbers")["n"].to_pylist()) == [1, 2, 3, 11, 12, 13]
        paths = [one.path for one in rows(store.database, "SELECT path FROM parquet_outputs "
                                          "WHERE reader_group = 'mine'")]  # fmt: skip
        made = [one.checkpoint for one in rows(store.database, "SELECT checkpoint FROM checkpoints "
                "WHERE reader_group = 'mine' AND checkpoint LIKE 'after %'")]  # fmt: skip
    found = [n for path in paths for n in pq.read_table(path)["n"].to_pylist()]
    assert sorted(found) == large
    assert len(made) == 1
