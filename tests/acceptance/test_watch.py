"""What happens to streams starts DAGs of a real Airflow, whoever did it."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

import weir
from tests.acceptance.asking import until
from tests.acceptance.conftest import settings_of
from tests.chance import random_for
from tests.world.streams import rows
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.local.installation import Installation
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.reader_groups.groups.lifecycle import create_reader_group

pytestmark = pytest.mark.timeout(600)

DAGS = """
from airflow.sdk import DAG, PartitionedAssetTimetable, task
from weir.airflow import GroupSensor, ProcessOperator, stream_asset, stream_hours

with DAG("watch_events", schedule=[stream_asset("watch/orders")], catchup=False):

    @task
    def told(triggering_asset_events=None):
        events = [one for some in triggering_asset_events.values() for one in some]
        return [n for one in events for n in one.extra["payload"]["transactions"]]

    told()

with DAG("watch_hours", schedule=PartitionedAssetTimetable(assets=stream_hours("watch/orders"))):

    @task
    def hour(**context):
        from weir.airflow import partition

        one = partition(context)
        return [one.key, one.late, sorted(one.read("watch/orders", ["key"])["key"].to_pylist())]

    hour()

with DAG("watch_group", schedule=None):
    GroupSensor(task_id="wait", reader_group="watch-orders", unread_at_most=0)
"""
DAY = datetime(2013, 6, 1, tzinfo=UTC)


class Watched:
    """A stream, the DAGs that are scheduled by it, and what they were told."""

    def __init__(self, installation: Installation, dags: str) -> None:
        self.installation = installation
        self.api = installation.airflow.api()
        self.settings = settings_of(installation)
        self.database = Database.of(self.settings)
        self.stream = stream_name("watch/orders")
        create_stream(
            self.database, self.stream, routing_key="key", segments=2, event_time="at",
            request_id="watch",
        )  # fmt: skip
        create_reader_group(self.database, "watch-orders", [self.stream], request_id="watch")
        (installation.state.parent / "dags" / "watching.py").write_text(dags)
        self.batches = 0

    def append(self, *hours: float, complete_until: datetime | None = None) -> int:
        """Append as a program does, without Airflow; return the number of the transaction."""
        at = [DAY + timedelta(hours=hour) for hour in hours]
        table = pa.table({"key": [str(hour) for hour in hours], "at": at})
        self.batches += 1
        return shared(self.settings).append(
            str(self.stream), table, writer_id="w", batch_id=str(self.batches),
            complete_until=complete_until,
        ).transaction_number  # fmt: skip

    def returned(self, dag: str, task: str) -> list[Any]:
        """What the successful runs of a DAG returned, in the order in which they began."""
        found = self.api.get(f"/dags/{dag}/dagRuns?order_by=run_after&limit=100")["dag_runs"]
        return [
            self.api.get(f"/dags/{dag}/dagRuns/{one['dag_run_id']}/taskInstances/{task}"
                         "/xcomEntries/return_value?deserialize=true")["value"]
            for one in found if one["state"] == "success"
        ]  # fmt: skip

    def told(self) -> list[int]:
        """The transactions of which runs were told."""
        return [number for one in self.returned("watch_events", "told") for number in one]

    def airflows(self, sql: str) -> list[str]:
        """What Airflow's own database answers, a text per row."""
        return self.installation.postgres.psql(sql, "airflow").split()

    def drifting(self) -> list[Any]:
        """What is committed and not announced."""
        return rows(self.database, "SELECT * FROM announcements WHERE NOT announced")


def kill(pid: int | None) -> None:
    """Kill a process with its children at once, as a machine that is lost."""
    main = psutil.Process(pid)
    for one in [*main.children(recursive=True), main]:
        with suppress(psutil.Error):
            one.send_signal(signal.SIGKILL)


class SecondScheduler:
    """A scheduler beside that of the installation, which knows nothing of it: as on another
    machine."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def see_to_it(self) -> None:
        """Start it if it does not run."""
        if self._process and self._process.poll() is None:
            return
        environ = self._installation.airflow.environment()
        del environ["WEIR_STACK_ID"]  # or the installation ends it as a remain of its own
        log = self._installation.airflow.log_file("scheduler").with_name("second-scheduler.log")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "scheduler", "--skip-serve-logs"],
                env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def stop(self) -> None:
        if self._process and self._process.poll() is None:
            kill(self.pid)
            self._process.wait()


@pytest.fixture
def second(watched: Watched) -> Iterator[SecondScheduler]:
    scheduler = SecondScheduler(watched.installation)
    scheduler.see_to_it()
    yield scheduler
    scheduler.stop()


@pytest.fixture(scope="module")
def watched(installation: Installation) -> Watched:
    found = Watched(installation, DAGS)
    # It is periodic, and the tests pause those.
    unpaused = "UPDATE dag SET is_paused = false WHERE dag_id = 'weir_partitions' RETURNING dag_id"
    until("the DAG of hours", lambda: found.airflows(unpaused))
    # What is appended before Airflow has read the DAGs starts none of them.
    until("both watches", lambda: len(rows(found.database, "SELECT FROM watch")) == 2)
    return found


@pytest.mark.release
def test_commits_of_a_program_start_a_dag_complete_hours_another_and_a_sensor_waits(
    watched: Watched,
) -> None:
    run = watched.api.trigger("watch_group", {})
    numbers = [watched.append(1.5, 2.5)]
    numbers.append(watched.append(3.5, complete_until=DAY + timedelta(hours=3)))
    until("a wait", lambda: watched.api.tasks("watch_group", run)[0]["state"] == "deferred")
    until("the commits", lambda: watched.told() == numbers)
    first = [[f"2013-06-01T0{n}:00:00", 0, [f"{n}.5"]] for n in (1, 2)]
    until("two hours", lambda: sorted(watched.returned("watch_hours", "hour")) == first)
    until("no drift", lambda: not watched.drifting())
    numbers.append(watched.append(1.7))
    again = ["2013-06-01T01:00:00", 1, ["1.5", "1.7"]]
    until("the late event", lambda: again in watched.returned("watch_hours", "hour"))
    opened = weir.open(database=watched.settings.database, warehouse=watched.settings.warehouse)
    with opened.reader("watch-orders") as reader:
        for batch in reader:
            batch.commit()
    assert watched.api.wait("watch_group", run, 120) == "success"
    until("no drift", lambda: not rows(watched.database, "SELECT * FROM announcements"))
    assert watched.told() == numbers, "each once"
    assert len(watched.returned("watch_hours", "hour")) == 3, "each hour once, and once for late"


@pytest.mark.release
def test_an_hour_that_completes_while_its_dag_is_paused_is_visible_and_starts_it_afterwards(
    watched: Watched,
) -> None:
    before = len(watched.returned("watch_hours", "hour"))
    paused = "UPDATE dag SET is_paused = {} WHERE dag_id = 'watch_hours' RETURNING dag_id"
    watched.airflows(paused.format(True))
    watched.append(3.6, complete_until=DAY + timedelta(hours=4))
    looked = "SELECT run_id FROM dag_run WHERE dag_id = 'weir_partitions' AND state = 'success'"
    runs = len(watched.airflows(looked))
    until("a look", lambda: len(watched.airflows(looked)) > runs)
    waiting = ["hours"]
    until("the hour", lambda: [one.kind for one in watched.drifting()] == waiting)
    watched.airflows(paused.format(False))
    until("no drift", lambda: not watched.drifting(), 240)
    until("the hour", lambda: len(watched.returned("watch_hours", "hour")) > before)
    assert watched.returned("watch_hours", "hour")[before:] == [
        ["2013-06-01T03:00:00", 0, ["3.5", "3.6"]]
    ]


@pytest.mark.release
def test_what_is_committed_while_the_triggerer_is_killed_is_announced(watched: Watched) -> None:
    numbers = []
    for _ in range(3):
        numbers.append(watched.append(5.5))
        kill(watched.installation.airflow.running()["triggerer"])
        numbers.append(watched.append(6.5))
        watched.installation.airflow.start()
    until("all of them", lambda: set(numbers) <= set(watched.told()))
    until("no drift", lambda: not watched.drifting())


@pytest.mark.release
def test_a_component_that_ends_while_another_is_started_is_started_again(watched: Watched) -> None:
    """So ends a scheduler some seconds after Postgres was killed."""
    airflow = watched.installation.airflow
    scheduler = airflow.running()["scheduler"]
    kill(airflow.running()["api-server"])
    until("the end", lambda: not airflow.running()["api-server"])
    with ThreadPoolExecutor() as pool:
        start = pool.submit(airflow.start)
        until("another one", lambda: airflow.running()["api-server"])
        kill(scheduler)
        start.result()
    assert all(airflow.running().values())
    assert airflow.running()["scheduler"] != scheduler


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_whatever_is_killed_every_commit_is_announced_and_every_hour_runs_once(
    watched: Watched, second: SecondScheduler
) -> None:
    """Kill either of two schedulers, the triggerer, the API server and Postgres at random, while a
    program appends."""
    chance, airflow = random_for("watch"), watched.installation.airflow
    victims = ["scheduler", "second scheduler", "triggerer", "api-server", "postgres"]
    hour, first = 24, watched.append(23.5, complete_until=DAY + timedelta(hours=24))
    end = time.monotonic() + float(os.environ.get("WEIR_SOAK_SECONDS", "600"))
    killed = Counter[str]()
    while time.monotonic() < end:
        victim = chance.choice(victims)
        killed[victim] += 1
        if victim == "postgres":
            watched.installation.postgres.kill()
        else:
            kill(second.pid if victim == "second scheduler" else airflow.running()[victim])
            watched.append(hour + 0.5)
        time.sleep(chance.uniform(0, 3))
        watched.installation.start()
        second.see_to_it()
        hour += 1
        watched.append(hour - 0.3, complete_until=DAY + timedelta(hours=hour))
        time.sleep(chance.uniform(0, 8))
    print(f"killed: {dict(killed)}, {hour - 24} hours")
    # It takes Airflow five minutes to see that a task died with its scheduler.
    try:
        until("no drift", lambda: not watched.drifting(), 1200)
    finally:
        print(f"drifting: {watched.drifting()}")
        print(airflow.log_file("triggerer").read_text(errors="replace")[-20_000:])
    committed = rows(
        watched.database,
        "SELECT transaction_number FROM transactions WHERE stream = :s AND events > 0 "
        "AND transaction_number >= :first",
        s=str(watched.stream), first=first,
    )  # fmt: skip
    told = watched.airflows(
        "SELECT DISTINCT n::bigint FROM asset_event e JOIN asset a ON a.id = e.asset_id, "
        "json_array_elements_text(e.extra::json -> 'payload' -> 'transactions') n "
        "WHERE a.name = 'weir watch/orders'"
    )
    assert {number for (number,) in committed} <= {int(number) for number in told}
    keys = watched.airflows("SELECT partition_key FROM dag_run WHERE dag_id = 'watch_hours'")
    wanted = {(DAY + timedelta(hours=n)).strftime("%Y-%m-%dT%H:%M:%S") for n in range(23, hour)}
    assert sorted(key for key in keys if key in wanted) == sorted(wanted), "each hour once"
