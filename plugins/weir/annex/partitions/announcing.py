"""The DAG `weir_partitions`: it announces hours and days of streams that are complete.

A trigger of Airflow can make no event with a partition key, so a task does it. Its events are
written in the transaction in which it succeeds; the task after it records that.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, NotRequired, TypedDict

from airflow.sdk import DAG, Asset, AssetWatcher, BaseOperator
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.context import InletEventsAccessors

from weir.airflow.tasks import RETRIES, failing
from weir.annex.partitions.partitions import SPANS, Partition, key_of, partition_asset
from weir.annex.partitions.records import announced_partitions, due_partitions, watched_partitions
from weir.annex.partitions.triggers import PartitionsTrigger
from weir.database.connection import Database
from weir.model.clock import clock_time
from weir.queries.annex.partitions.announcing import DuePartitions
from weir.settings import load

if TYPE_CHECKING:
    from weir.airflow.context import Context

PAGE = """### Announce hours and days of streams that are complete.

Airflow's triggerer starts this DAG when a writer has stated that a stream is complete up to a later
time, or when late events came, if a DAG is scheduled by `stream_hours` or `stream_days`. Each hour
and each day is announced once, and again with `late` for events that came after it was announced.
Without an event, it looks at all of them.

What would start only DAGs that are paused waits up to ten minutes, as Airflow forgets it; by then
Airflow asks for it no longer, or another DAG wants it.

**On failure.** What was not recorded as announced is announced again.
"""
LAST = 50  # events of an asset that say which DAGs it starts
MOST = 500  # partitions that one run announces of a stream; the next one goes on


class Announced(TypedDict):
    """What was announced of a stream. `numbers`: of the late commits that it says."""

    kind: str
    stream: str
    until: int | None
    numbers: list[int]
    said: NotRequired[str]
    left_out: str | None


class AnnouncePartitions(BaseOperator):
    """Make an event with a partition key for each hour or day that is due; return what to
    record."""

    def execute(self, context: "Context") -> list[Announced]:
        settings = load()
        wanted = {
            (kind, stream)
            for events in dict(context["triggering_asset_events"]).values()
            for event in events
            for kind, stream in (event.extra or {}).get("payload", {}).get("partitions", [])
        }
        with failing(), Database.of(settings) as database:
            name = settings.airflow_name
            due = due_partitions(
                database, name, sorted(wanted) or watched_partitions(database, name)
            )
            told = [done for one in due if (done := self._announce(database, context, one))]
        for one in told:
            self.log.info("%s of %s: %s", one["kind"], one["stream"], one.pop("said"))
        return told

    def _announce(
        self, database: Database, context: "Context", due: DuePartitions
    ) -> Announced | None:
        asset = partition_asset(due.stream, due.kind)
        paused, awake = consumers(context, asset)
        if paused and not awake and due.fresh:
            self.log.info(
                "%s of %s: not announced yet, as Airflow forgets what it is told for a paused DAG "
                "(%s)", due.kind, due.stream, ", ".join(paused),
            )  # fmt: skip
            return None
        kind, stream, until, bound = due.kind, due.stream, due.until, due.bound
        span = SPANS[kind] // timedelta(microseconds=1)
        late: dict[int, int | None] = {}
        since, numbers, end, left_out = due.since, list(due.numbers), until, []
        if paused and until is not None:
            left_out.append(f"{kind} up to {_at(until)} for {', '.join(paused)}, which is paused")
        if due.left_out:
            left_out.append(f"{kind} before {_at(bound)}")
        if due.across:
            from weir.annex.partitions.events import first_after  # pyarrow loads slowly

            first = first_after(database, stream, due.across, bound)
            since = since if first is None else min(since, first // span * span)
        if until is not None and until > since + MOST * span:  # the rest, and what is late, later
            end, numbers = since + MOST * span, []
        elif due.late:
            from weir.annex.partitions.events import late_partitions

            far = 0
            for number in due.late:
                found, further = late_partitions(database, stream, span, number, since, bound)
                far += further
                for at, count in found.items():
                    before = late.get(at, 0)
                    late[at] = None if count is None or before is None else before + count
            if far:
                left_out.append(f"{far:,} late events of {kind} before {_at(bound)}")
            if len(late) > MOST:
                gone = sorted(late)[:-MOST]
                left_out.append(
                    f"late events of {len(gone):,} {kind} from {_at(gone[0])} to {_at(gone[-1])}"
                )
                late = {at: late[at] for at in sorted(late)[-MOST:]}
        again = {key_of(kind, clock_time(at)): count for at, count in late.items()}
        times = range(since, end, span) if end is not None else []
        keys = [key_of(kind, clock_time(at)) for at in times]
        if every := [*again, *keys]:
            self.outlets: list[Asset] = [*self.outlets, asset]
            event = context["outlet_events"][asset]
            event.add_partitions(every)
            event.extra = {"partitions": {key: _said(key, again.get(key, 0)) for key in every}}
        said = f"{len(keys)} complete, {len(again)} with late events"
        if left := "; ".join(left_out):
            said += f"; left out: {left}"
        return {
            "kind": kind, "stream": stream, "until": end, "numbers": numbers, "said": said,
            "left_out": left or None,
        }  # fmt: skip


def consumers(context: "Context", asset: Asset) -> tuple[list[str], list[str]]:
    """Return the DAGs that the last events of an asset have started: those that are paused, and
    those that are not. Nobody tells a task which DAGs an asset schedules, or, outside of Airflow,
    anything."""
    if "inlet_events" not in context:
        return [], []
    events = InletEventsAccessors([asset])[asset].ascending(False).limit(LAST)
    dags = sorted({run.dag_id for event in events for run in event.created_dagruns})
    paused: list[str] = []
    awake: list[str] = []
    for dag in dags:
        try:
            (paused if context["ti"].get_dag(dag).is_paused else awake).append(dag)
        except AirflowRuntimeError:
            continue  # it was deleted
    return paused, awake


def _at(time: int) -> str:
    return clock_time(time).isoformat().replace("+00:00", "Z")


def _said(key: str, late: int | None) -> dict[str, object]:
    one = Partition.of(key)
    return {"since": one.since.isoformat(), "until": one.until.isoformat(), "late": late}


class RecordPartitions(BaseOperator):
    """Record that what the task before has announced is in Airflow's database."""

    def execute(self, context: "Context") -> None:
        settings = load()
        told = context["ti"].xcom_pull(task_ids="announce") or []
        with failing(), Database.of(settings) as database:
            announced_partitions(database, settings.airflow_name, told)


def partitions_dag() -> DAG:
    """Return the DAG `weir_partitions`."""
    due = Asset(
        name="weir partitions",
        uri="weir://partitions",
        watchers=[AssetWatcher(name="weir", trigger=PartitionsTrigger())],
    )
    with DAG(
        "weir_partitions",
        doc_md=PAGE,
        schedule=[due],
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=["weir", "periodic", "streams"],
        default_args={**RETRIES, "owner": "weir", "execution_timeout": timedelta(hours=1)},
    ) as dag:
        announce = AnnouncePartitions(task_id="announce")
        # What Airflow has written must not be announced again, so it is tried for hours.
        record = RecordPartitions(task_id="record", retries=50)
        announce >> record
    return dag
