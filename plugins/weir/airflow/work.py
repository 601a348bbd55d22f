"""How Airflow learns that a job has something to do: the triggerer asks when its schedule comes
round, in one statement for all whose minute it is (docs/decisions/0101). What is lost with a
triggerer is found the next time."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from airflow.sdk import Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from croniter import croniter  # type: ignore[import-untyped]

from weir.database.connection import Database
from weir.operations.work import patience_of, work_of
from weir.settings import hasty, load

log = logging.getLogger("weir.airflow")

EVERY = 1.0  # seconds between two looks at the clock

# What the triggers of this process look for: jobs with their schedules.
_wanted: Counter[tuple[str, str]] = Counter()


class WorkTrigger(BaseEventTrigger):
    """Fires when a schedule comes round and its job has something to do.

    `patience`: the settings of the installation that say so, as JSON. A triggerer need not have
    them.
    """

    def __init__(self, job: str, schedule: str, patience: str) -> None:
        super().__init__()
        self.job, self.schedule, self.patience = job, schedule, patience

    def serialize(self) -> tuple[str, dict[str, object]]:
        kwargs = {"job": self.job, "schedule": self.schedule, "patience": self.patience}
        return f"{__name__}.WorkTrigger", {**kwargs}

    def shared_stream_key(self) -> tuple[str, ...]:
        return ("weir work", self.patience)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, str]) -> AsyncIterator[dict[str, str]]:
        database = Database.of(hasty(load()))
        patience = json.loads(kwargs["patience"])
        minute = _this_minute()
        try:
            while True:
                await asyncio.sleep(EVERY)
                if (now := _this_minute()) <= minute:
                    continue
                jobs = due(minute, now)
                minute = now
                if jobs and (found := await asyncio.to_thread(look, database, jobs, patience)):
                    yield found
        finally:
            database.dispose()

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[dict[str, str]]
    ) -> AsyncIterator[TriggerEvent]:
        one = self.job, self.schedule
        _wanted[one] += 1
        try:
            async for found in shared_stream:
                if what := found.get(self.job):
                    yield TriggerEvent({"work": what})
        finally:
            _wanted[one] -= 1

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise NotImplementedError("the triggerer must share streams, as Airflow 3.3 does")
        yield


def _this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)


def due(since: datetime, until: datetime) -> list[str]:
    """Return the jobs that somebody here waits for and whose schedule has come round after `since`,
    up to `until`: minutes in UTC."""
    jobs = {job for (job, schedule), count in _wanted.items()
            if count and croniter(schedule, since).get_next(datetime) <= until}  # fmt: skip
    return sorted(jobs)


def look(database: Database, jobs: list[str], patience: dict[str, float]) -> dict[str, str]:
    """Return what some jobs may have to do, by those that have anything. If that is not known, they
    begin, and say what is wrong."""
    try:
        return {job: "; ".join(what) for job, what in work_of(database, jobs, patience).items()}
    except Exception as error:
        log.warning("what there is to do is not known, so %s begin: %s", ", ".join(jobs), error)
        return dict.fromkeys(jobs, "it is not known")


def work_asset(job: str, schedule: str) -> Asset:
    """Return the asset by which the DAG of a job runs: its event says that the job has something to
    do. Raises InvalidInput for a wrong setting, and ValueError for a wrong schedule, at which the
    triggerer would stop for all jobs."""
    croniter(schedule)
    patience = json.dumps(patience_of(load()), sort_keys=True)
    trigger = WorkTrigger(job, schedule, patience)
    return Asset(
        name=f"weir {job} ({schedule})",
        uri=f"weir://work-{job}",
        watchers=[AssetWatcher(name="weir", trigger=trigger)],
    )
