"""Every operator, decorator and sensor in one DAG, under the real scheduler: all is done once,
though the run is cleared and done again. Losses are approved; a deadline is missed, and told."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import weir
from tests.acceptance.asking import answer, clear, path_of
from tests.world.streams import rows
from weir.airflow import operator_name
from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation
from weir.operations.jobs import ACTIONS
from weir.programs.store import StreamStore
from weir.settings import Settings

pytestmark = [pytest.mark.timeout(2400), pytest.mark.release]
WORK = """
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, AsyncCallback, DeadlineAlert, chain, task
from weir import airflow as w

NUMBERS, ALL, TIME = "every/numbers", "every", "2026-01-01T05:00:00Z"
late = DeadlineAlert(
    reference=w.StreamCompleteDeadline(NUMBERS), interval=timedelta(seconds=1),
    callback=AsyncCallback("telling.late"),
)


def tell(context):
    print(context["weir_alert"]["message"])


with DAG("every_work", schedule=None, deadline=late):

    @task.weir_append(stream=NUMBERS, complete_until=TIME)
    def decorated_append():
        return [{"n": n, "at": datetime(2026, 1, 1, 4, tzinfo=UTC)} for n in range(4)]

    @task.weir_process(reader_group="own", outputs=["stream:every/large"], engine="spark")
    def decorated_process(events):
        return events.where("n > 2").select("n")

    chain(
        w.CreateStreamOperator(
            task_id="create_stream", stream=NUMBERS, routing_key="n", segments=2,
            schema="n BIGINT, at TIMESTAMP", event_time="at",
        ),
        w.CreateStreamOperator(task_id="create_large", stream="every/large", routing_key="n"),
        w.CreateStreamOperator(task_id="create_idle", stream="every/idle", routing_key="n"),
        w.CreateReaderGroupOperator(
            task_id="create_reader_group", reader_group=ALL, streams=[NUMBERS], release="manual"
        ),
        w.CreateReaderGroupOperator(task_id="create_own", reader_group="own", streams=[NUMBERS]),
        w.CreateReaderGroupOperator(task_id="never", reader_group="never", streams=[NUMBERS]),
        decorated_append(),
        w.AppendOperator(task_id="ingest", stream=NUMBERS, files=["every.csv"]),
        w.AppendQueryOperator(
            task_id="query", stream=NUMBERS,
            query="SELECT 7L AS n, TIMESTAMP'2026-01-01 04:30:00Z' AS at",
        ),
        w.StreamSensor(task_id="complete", stream=NUMBERS, complete_until="2026-01-01T04:00:00Z"),
        w.GroupSensor(task_id="unread", reader_group="never", unread_at_least=6),
        w.StreamSensor(task_id="new", stream="every/idle"),
        w.DefineAdjunctStoreOperator(
            task_id="define_adjunct_store", adjunct_store="every/newest", stream=NUMBERS
        ),
        w.AdjunctOperator(task_id="adjunct", adjunct_stores=["every/newest"]),
        w.StoreSensor(task_id="fresh", adjunct_store="every/newest", up_to=TIME),
        w.UpdateAdjunctStoreOperator(
            task_id="update_adjunct_store", adjunct_store="every/newest", time_out="3 d"
        ),
        decorated_process(),
        w.ProcessOperator(
            task_id="process", reader_group=ALL, function="shop:totals", outputs=["parquet:every"],
            on_error="quarantine",
        ),
        w.PutBackOperator(
            task_id="put_back", reader_group=ALL, function="shop:totals",
            outputs=["parquet:every_again"],
        ),
        w.GroupSensor(task_id="read", reader_group=ALL),
        w.GroupSensor(task_id="nothing_unread", reader_group=ALL, unread_at_most=0),
        w.CheckpointOperator(task_id="checkpoint_reader_group", reader_group=ALL, name="c"),
        w.CheckpointsOperator(task_id="checkpoints"),
        w.CaptureOperator(task_id="stream_cuts"),
        w.ReleaseReaderGroupOperator(
            task_id="release_reader_group", reader_group=ALL, at="checkpoint c"
        ),
        w.ForkReaderGroupOperator(
            task_id="fork_reader_group", reader_group=ALL, new_reader_group="fork",
            at="checkpoint c",
        ),
        w.UpdateReaderGroupOperator(
            task_id="update_reader_group", reader_group="fork", time_out="30 d"
        ),
        w.ReaderOfflineOperator(
            task_id="reader_offline", reader_group="away", reader="READER"
        ),
        w.ScaleOperator(task_id="scale_stream", stream=NUMBERS, segments=["0.0"], parts=2),
        w.ScaleByPolicyOperator(task_id="scale", streams=[NUMBERS], engine="pyarrow"),
        w.BackTestOperator(task_id="back_test", stream=NUMBERS, target_rate=5),
        w.UpdateStreamOperator(task_id="update_stream", stream=NUMBERS, retention="consumed"),
        w.ApplyOperator(
            task_id="apply", allow_loss=True,
            text="streams: {every/idle: {routing_key: n, retention: age, retain_max_age: 1 h}}",
        ),
        w.ResetReaderGroupOperator(
            task_id="reset_reader_group", reader_group=ALL, to="head", allow_repeat=True,
            dry_run=False,
        ),
        w.EraseOperator(
            task_id="erase", stream="every/large", reason="asked", keys=["5"], dry_run=False
        ),
        w.TruncateOperator(
            task_id="truncate_stream", stream="every/large", cut="tail", dry_run=False
        ),
        w.RetentionOperator(task_id="retention"),
        w.CompactOperator(task_id="compact"),
        w.VerifyOperator(task_id="verify"),
        w.AuditOperator(task_id="audit", everything=True, files=True),
        w.RecoverOperator(task_id="recover"),
        w.UpkeepOperator(task_id="upkeep"),
        w.AlertsOperator(task_id="alerts", notify=tell),
    )
"""
ENDS = """
from airflow.sdk import DAG, chain
from weir import airflow as w

with DAG("every_end", schedule=None):
    chain(
        w.DeleteAdjunctStoreOperator(
            task_id="delete_adjunct_store", adjunct_store="every/newest", dry_run=False
        ),
        w.DeleteReaderGroupOperator(
            task_id="delete_reader_group", reader_group="never", dry_run=False
        ),
        w.SealStreamOperator(task_id="seal_stream", stream="every/idle"),
        w.DeleteStreamOperator(
            task_id="delete_stream", stream="every/large", unread_too=True, dry_run=False
        ),
    )
"""
# Which of these lose something here, so that they ask.
LOSING = {"apply", "erase", "reset_reader_group", "truncate_stream"}
ENDING = {"delete_adjunct_store", "delete_reader_group", "delete_stream"}


@pytest.fixture
def store(installation: Installation, settings: Settings) -> Iterator[StreamStore]:
    folder = Path(settings.input_roots[0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "every.csv").write_text("n,at\n5,2026-01-01T04:10:00Z\n6,2026-01-01T04:20:00Z\n")
    functions = installation.state.parent / "functions"
    functions.mkdir(exist_ok=True)
    with weir.open(settings=settings) as store:
        yield store


def finish(
    api: AirflowApi, store: StreamStore, dag: str, run: str, seconds: float = 1000
) -> set[str]:
    """Approve whatever a run asks, and append when it waits for an event; return who asked."""
    asked, end, path = set(), time.monotonic() + seconds, f"/dags/{dag}/dagRuns/{quote(run)}"
    while (state := api.get(path)["state"]) not in ("success", "failed"):
        assert time.monotonic() < end, (
            f"{[(t['task_id'], t['state']) for t in api.tasks(dag, run)]}"
        )
        for one in api.tasks(dag, run):
            if one["state"] == "awaiting_input":
                ask = path_of(dag, run, one["task_id"])
                if not api.get(f"{ask}/-1/hitlDetails")["response_received"]:
                    asked.add(one["task_id"])
                    answer(api, ask)
            elif one["state"] == "deferred" and one["task_id"] == "new":
                store.append("every/idle", [{"n": 1}])
        time.sleep(0.5)
    assert state == "success", api.failure(dag, run)
    return asked


def facts(store: StreamStore) -> dict[str, object]:
    """What there is, without what goes on by itself."""
    asked = {
        "events": "SELECT count(*) AS n FROM transactions WHERE stream = 'every/numbers'",
        "epochs": "SELECT current_epoch AS n FROM streams WHERE stream = 'every/numbers'",
        "groups": "SELECT count(*) AS n FROM reader_groups",
        "outputs": "SELECT count(*) AS n FROM parquet_outputs WHERE reader_group = 'every'",
        "checkpoints": "SELECT count(*) AS n FROM checkpoints WHERE checkpoint = 'c'",
        "large": "SELECT count(*) AS n FROM transactions WHERE stream = 'every/large'",
    }
    return {name: rows(store.database, sql)[0].n for name, sql in asked.items()}


def test_every_operator_does_its_thing_once_though_all_is_cleared(
    installation: Installation, store: StreamStore
) -> None:
    api, dags = installation.airflow.api(), installation.state.parent / "dags"
    (installation.state.parent / "functions" / "shop.py").write_text(
        "def totals(events, **_):\n    return events.groupBy('n').count()\n"
    )
    store.create_stream("every/away", "n")
    store.append("every/away", [{"n": 1}])
    store.create_reader_group("away", ["every/away"])
    with store.reader("away") as reader:
        next(iter(reader))  # so it has a batch that nobody else reads
        there = "SELECT reader_id FROM readers WHERE reader_group = 'away'"
        name = rows(store.database, there)[0].reader_id
        (dags / "every.py").write_text(WORK.replace("READER", name))
        run = api.trigger("every_work")
        assert finish(api, store, "every_work", run) == LOSING
    found = facts(store)
    assert found["events"] == 3
    assert sorted(store.read("every/numbers")["n"].to_pylist()) == [0, 1, 2, 3, 5, 6, 7]
    assert (installation.state / "late").read_text(), "the deadline was missed, and told"
    done = {one.job for one in rows(store.database, "SELECT job FROM job_runs WHERE dag_id = "
                                    "'every_work' AND state = 'succeeded'")}  # fmt: skip
    assert done >= set(ACTIONS) - ENDING - {"seal_stream"}, "every operator"
    clear(api, "every_work", run)
    assert finish(api, store, "every_work", run) == set(), "it was approved, and done"
    found["outputs"] = 2  # its group was reset to the head, so it has read all again
    assert facts(store) == found

    store.seal_stream("every/large")  # by a task, it could not be sealed again once it is deleted
    (dags / "every_end.py").write_text(ENDS)
    run = api.trigger("every_end")
    assert finish(api, store, "every_end", run) == ENDING
    clear(api, "every_end", run)
    assert finish(api, store, "every_end", run) == set()
    assert not rows(store.database, "SELECT FROM streams WHERE stream = 'every/large'")
    used = WORK + ENDS
    assert not [name for name in ACTIONS if f"w.{operator_name(name)}(" not in used]
