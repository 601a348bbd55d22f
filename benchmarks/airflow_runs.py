"""What Weir's DAGs cost under the real scheduler: at rest, and from Trigger to success."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
from sqlalchemy import text

import weir
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.database.connection import Database
from weir.local import processes
from weir.local.installation import Installation
from weir.settings import Settings, load
from weir.source_tree import beside

EMPTY = """
from airflow.sdk import DAG, task
with DAG("empty", schedule=None):
    @task
    def work():
        return None
    work()
"""
FUNCTION = "def all_of(events):\n    return events\n"
# How often an hour a schedule comes round, without the weekly audit, which always runs.
SCHEDULED = {
    "weir_stream_cuts": 12, "weir_adjunct": 12, "weir_checkpoints": 12, "weir_scale": 12,
    "weir_retention": 2, "weir_upkeep": 1,
}  # fmt: skip
AN_HOUR = 60.0  # the most seconds of processor time that these may take
MEASURED = 150.0  # seconds


class _Meter(threading.Thread):
    """Adds up for how many seconds processors work for an Airflow, while its block runs: of each
    process what it had at the beginning and when it was last seen."""

    def __init__(self, airflow: "_Airflow") -> None:
        super().__init__(daemon=True)
        self._airflow, self._over = airflow, threading.Event()
        self._first: dict[tuple[int, float], float] = {}
        self._last: dict[tuple[int, float], float] = {}

    def __enter__(self) -> "_Meter":
        self._look()
        self._first = {**self._last}
        self._begun = time.monotonic()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        self._look()
        self.took = time.monotonic() - self._begun
        self.worked = sum(one - self._first.get(key, 0.0) for key, one in self._last.items())

    def run(self) -> None:
        while not self._over.wait(0.3):
            self._look()

    def _look(self) -> None:
        for one in self._airflow.processes():
            with suppress(psutil.Error):
                self._last[one.pid, one.create_time()] = sum(one.cpu_times()[:2])


@dataclass
class _Airflow:
    """An Airflow that has Weir's DAGs, each of those with a schedule by another one, and an empty
    DAG; a stream with events, and a group that has read them."""

    installation: Installation
    settings: Settings
    store: weir.StreamStore
    events: int = 0

    @classmethod
    def made(cls, setting: Setting, schedule: str) -> "_Airflow":
        home = setting.folder / f"airflow-{setting.number()}"
        dags, functions = home / "dags", home / "functions"
        for folder in (dags, functions):
            folder.mkdir(parents=True)
        (dags / "empty.py").write_text(EMPTY)
        (functions / "bench_functions.py").write_text(FUNCTION)
        (dags / "by_hand.py").write_text((beside("dags") / "weir_by_hand.py").read_text())
        periodic = (beside("dags") / "weir_periodic.py").read_text()
        periodic = re.sub(r'@scheduled\("[^"]+"', f'@scheduled("{schedule}"', periodic)
        (dags / "periodic.py").write_text(periodic)
        own = {
            "WEIR_FUNCTION_PATH": str(functions),
            "WEIR_FUNCTION_PACKAGES": "bench_functions",
            # Reading DAG files is a cost of its own (airflow/parse), in bursts.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "86400",
        }
        os.environ |= own  # which its processes inherit
        installation = Installation(home / ".weir", dags=dags, durable=False)
        setting.at_end.callback(installation.postgres.remove)
        setting.at_end.callback(installation.stop)
        installation.spark.want(True)
        installation.start()
        settings = load(dict(os.environ) | installation.environment())
        made = cls(
            installation, settings, setting.at_end.enter_context(weir.open(settings=settings))
        )
        made.store.create_stream("bench/events", "n")
        made.append()
        made.store.create_reader_group("bench", ["bench/events"])
        return made

    def append(self) -> None:
        """Append 1,000 events."""
        numbers = range(self.events, self.events + 1_000)
        self.events += 1_000
        table = pa.table({"n": list(numbers), "item": [f"item {n}" for n in numbers]})
        self.store.append("bench/events", table)

    def seconds(self, dag: str, conf: dict[str, object] | None = None) -> float:
        """Trigger a DAG, wait for its success, and return how long that took."""
        api = self.installation.airflow.api()
        run = api.trigger(dag, conf or {})
        assert api.wait(dag, run) == "success", dag
        found = api.get(f"/dags/{dag}/dagRuns/{quote(run)}")
        begun, ended = (datetime.fromisoformat(found[one]) for one in ("queued_at", "end_date"))
        return (ended - begun).total_seconds()

    def pause(self, paused: bool) -> None:
        """Pause what has a schedule, or let it run."""
        for dag in (*SCHEDULED, *(["weir_audit"] if paused else [])):
            self.installation.airflow.api().patch(f"/dags/{dag}", {"is_paused": paused})

    def running(self) -> int:
        """Return how many tasks are at work. A run whose DAG was paused before its task began never
        ends."""
        return self._count("running", "queued")

    def ended(self) -> int:
        """Return how many tasks have ended."""
        return self._count("success", "failed")

    def _count(self, *states: str) -> int:
        asked = "&".join(["limit=1", *(f"state={state}" for state in states)])
        found = self.installation.airflow.api().get(f"/dags/~/dagRuns/~/taskInstances?{asked}")
        return int(found["total_entries"])

    def jobs(self) -> int:
        """Return how many jobs have begun."""
        with Database.of(self.settings) as database:
            asked = text("SELECT count(*) FROM weir.job_runs")
            return int(database.transaction(lambda c: c.execute(asked).scalar_one()))

    def processes(self) -> list[psutil.Process]:
        """Return all processes of Airflow, its tasks and their JVMs, and of Postgres."""
        home = str(self.installation.postgres.home)
        ours = {one.pid: one for one in processes.carrying("WEIR_STACK_ID", self._stack)}
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                if "postgres" in one.name() and any(home in word for word in one.cmdline()):
                    ours |= {child.pid: child for child in (one, *one.children(recursive=True))}
        return list(ours.values())

    @property
    def _stack(self) -> str:
        return str(self.installation.airflow.environment()["WEIR_STACK_ID"])


def idle(setting: Setting) -> Figure:
    """Return the figure of what an hour costs in which nothing is to do: of a schedule that comes
    round, as it is measured with all of them each minute, times how often they do in an hour."""
    airflow = _Airflow.made(setting, "* * * * *")
    _until(lambda: airflow.ended() > 0, 300)
    _at_rest(airflow)

    def ours() -> float:
        airflow.pause(True)
        _until(lambda: not airflow.running(), 300)
        with _Meter(airflow) as alone:
            time.sleep(MEASURED)
        ended, jobs = airflow.ended(), airflow.jobs()
        with _Meter(airflow) as beside:
            airflow.pause(False)
            time.sleep(MEASURED)
            airflow.pause(True)
            _until(lambda: not airflow.running(), 300)
        runs = airflow.ended() - ended
        rounds = runs or MEASURED / 60 * len(SCHEDULED)  # no run begins where nothing is to do
        each = (beside.worked - alone.worked * beside.took / alone.took) / rounds
        setting.said["runs"] = runs
        setting.said["jobs"] = airflow.jobs() - jobs
        setting.said["each"] = round(each, 3)
        setting.said["airflow_alone"] = round(alone.worked / alone.took * 3600)
        return each * sum(SCHEDULED.values())

    return Figure(
        "airflow/idle",
        "processor time of an hour in which no schedule finds anything to do, above Airflow alone, "
        "beside a minute",
        ours,
        lambda: AN_HOUR,
        limit=1.0,
        runs=2,
        small_runs=1,
        warm_up=0,
        unit="s/h",
    )


def _at_rest(airflow: _Airflow) -> None:
    """Wait until no job has begun for some time, or for five minutes."""
    end, jobs, since = time.monotonic() + 300, -1, time.monotonic()
    while time.monotonic() < min(end, since + 70):
        if (now := airflow.jobs()) != jobs:
            jobs, since = now, time.monotonic()
        time.sleep(2)


def _until(condition: Callable[[], bool], patience: float) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(1)


_shared: dict[int, _Airflow] = {}


@contextmanager
def _triggered(setting: Setting) -> Iterator[_Airflow]:
    """Give the Airflow that the figures of a trigger share, whose schedules never come."""
    if id(setting) not in _shared:
        _shared[id(setting)] = _Airflow.made(setting, "0 0 1 1 *")
        setting.at_end.callback(_shared.pop, id(setting))
    yield _shared[id(setting)]


def _figure(
    setting: Setting, name: str, what: str, limit: float, ours: Callable[[_Airflow], float]
) -> Figure:
    with _triggered(setting) as airflow:
        return Figure(
            f"airflow/trigger-{name}",
            f"{what}, from Trigger to success, beside an empty @task",
            lambda: ours(airflow),
            lambda: airflow.seconds("empty"),
            limit=limit,
            small_runs=3,
        )


def create(setting: Setting) -> Figure:
    """Return the figure of the form that creates a stream."""

    def ours(airflow: _Airflow) -> float:
        name = f"bench/made-{setting.number()}"
        return airflow.seconds("weir_create_stream", {"stream": name, "routing_key": "n"})

    return _figure(setting, "create", "the form that creates a stream", 2.0, ours)


def ingest(setting: Setting) -> Figure:
    """Return the figure of the form that appends a file."""

    def ours(airflow: _Airflow) -> float:
        name = f"rows-{setting.number()}.csv"
        lines = [f"{n},item {n}" for n in range(1_000)]
        folder = airflow.installation.state / "input"
        (folder / name).write_text("\n".join(["n,item", *lines]))
        return airflow.seconds("weir_ingest", {"stream": "bench/events", "files": [name]})

    return _figure(setting, "ingest", "the form that appends a file of 1,000 rows", 3.0, ours)


def process(setting: Setting) -> Figure:
    """Return the figure of the form that processes a batch."""

    def ours(airflow: _Airflow) -> float:
        airflow.append()
        given = {
            "reader_group": "bench", "function": "bench_functions:all_of",
            "outputs": ["parquet:bench"], "batch_events": 1_000_000,
        }  # fmt: skip
        return airflow.seconds("weir_process", given)

    return _figure(
        setting, "process", "the form that processes 1,000 events or few more", 3.0, ours
    )


def nothing(setting: Setting) -> Figure:
    """Return the figure of a job with a schedule that has nothing to do."""
    return _figure(
        setting, "nothing", "weir_checkpoints with nothing to do", 1.2,
        lambda airflow: airflow.seconds("weir_checkpoints"),
    )  # fmt: skip


FIGURES = {
    "airflow/idle": idle,
    "airflow/trigger-nothing": nothing,
    "airflow/trigger-create": create,
    "airflow/trigger-ingest": ingest,
    "airflow/trigger-process": process,
}
