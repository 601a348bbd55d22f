"""Hours and days of a stream's event time as partitions of Airflow: one key when the hour is
complete by the writers' word, and the key again when late events come.

A trigger's event has no key and starts no run, so a task makes these events: Airflow writes them
and the task's success in one transaction, and the next task records what was announced.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetWatcher

from weir.annex.partitions.triggers import WantedTrigger
from weir.errors import InvalidInput
from weir.model.clock import EPOCH
from weir.model.names import stream_name

if TYPE_CHECKING:
    import pyarrow as pa

SPANS = {"hours": timedelta(hours=1), "days": timedelta(days=1)}
_MICROSECOND = timedelta(microseconds=1)


def stream_hours(stream: str) -> Asset:
    """Return the asset whose partitions are the hours of a stream's event time that are complete,
    for `schedule=PartitionedAssetTimetable(assets=stream_hours(...))` (semantics 19.2)."""
    return partition_asset(stream, "hours")


def stream_days(stream: str) -> Asset:
    """Return the asset whose partitions are the days of a stream's event time that are complete, in
    UTC (semantics 19.2)."""
    return partition_asset(stream, "days")


def partition_asset(stream: str, kind: str) -> Asset:
    """Return the asset of hours or days of a stream."""
    name = stream_name(stream)
    return Asset(
        name=f"weir {name} {kind}",
        uri=f"weir://{name.scope}/{name.name}/{kind}",
        watchers=[AssetWatcher(name="weir", trigger=WantedTrigger(str(name), kind))],
    )


@dataclass(frozen=True)
class Partition:
    """An hour or a day of event time: from `since`, up to but not including `until`.

    `late`: how many events of it came after it had been announced, if this run is because of them;
    None if they were not counted, as Weir does not compute their event time any more.
    """

    key: str
    since: datetime
    until: datetime
    late: int | None = 0

    @classmethod
    def of(cls, key: str, late: int | None = 0) -> "Partition":
        """Return the partition of a key: `2026-06-01T10:00:00` is an hour, `2026-06-01` a day.
        Raises InvalidInput."""
        try:
            since = datetime.fromisoformat(key).replace(tzinfo=UTC)
        except ValueError:
            since = EPOCH + _MICROSECOND
        kind = "days" if len(key) == 10 else "hours"
        if key_of(kind, since) != key or (since - EPOCH) % SPANS[kind]:
            raise InvalidInput(
                "argument_invalid",
                f"{key!r} is no key of an hour or a day; write 2026-06-01T10:00:00 or 2026-06-01.",
            )
        return cls(key, since, since + SPANS[kind], late)

    def read(self, stream: str, columns: list[str] | None = None) -> "pa.Table":
        """Return the events of a stream with event times in this partition, late ones too, as a
        pyarrow table.

        Raises InvalidInput if the event time can't be computed.
        """
        from weir.programs.opening import shared  # pyarrow takes a while to load

        found = shared().read(
            stream, event_time_since=self.since, event_time_until=self.until, columns=columns
        )
        return found if columns is None else found.select(columns)


def key_of(kind: str, since: datetime) -> str:
    """Return the key of the hour or day that begins at a time."""
    return since.strftime("%Y-%m-%d" if kind == "days" else "%Y-%m-%dT%H:%M:%S")


def since(key: str) -> datetime:
    """Return when the hour or day of a partition key begins: `macros.weir.since` in templates."""
    return Partition.of(key).since


def until(key: str) -> datetime:
    """Return when the hour or day of a partition key ends: `macros.weir.until` in templates."""
    return Partition.of(key).until


def partition(context: Any) -> Partition:
    """Return the partition of a DAG run that was started by `stream_hours` or `stream_days`, or
    with a key by hand. Raises InvalidInput for a run without a key."""
    key = context["dag_run"].partition_key
    late: int | None = 0
    for events in dict(context.get("triggering_asset_events") or {}).values():
        for event in events:
            said = (event.extra or {}).get("partitions", {}).get(key, {})
            more = said.get("late", 0)
            late = None if late is None or more is None else late + more
    if not key:
        raise InvalidInput(
            "argument_invalid",
            "this run has no partition key; trigger it with one, such as 2026-06-01T10:00:00.",
        )
    return Partition.of(key, late)
