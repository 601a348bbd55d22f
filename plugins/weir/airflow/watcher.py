"""How Airflow learns of commits: one poll of Weir's database per triggerer, for all streams by
which DAGs are scheduled, whoever appended to them (docs/decisions/0075).

A transaction counts as announced once Airflow has said that its event is in Airflow's database.
Until then it is announced again, by whichever triggerer runs.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from airflow.configuration import conf
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from weir.controller.announcements import announced, to_announce, watch
from weir.database.connection import Database
from weir.errors import WeirError
from weir.model.names import stream_name
from weir.queries.controller.announcements import ToAnnounce
from weir.settings import hasty, load

log = logging.getLogger("weir.airflow")
T = TypeVar("T")

EVERY = 2.0  # seconds between two polls
SEEN_EVERY = 3600.0  # seconds after which a triggerer says again what it watches

# What the triggers of this process wait for: pairs of kind and stream.
wanted: Counter[tuple[str, str]] = Counter()


@dataclass
class Found:
    """What one poll has found, and which of it the triggers have handed to Airflow."""

    rows: dict[tuple[str, str], ToAnnounce]
    begun: float = field(default_factory=time.monotonic)
    told: list[tuple[str, int]] = field(default_factory=list)


class PolledTrigger(BaseEventTrigger):
    """The base of triggers that hear of what one poll of their triggerer has found."""

    def shared_stream_key(self) -> tuple[str, ...]:
        return ("weir",)

    @classmethod
    def create_shared_stream_producer(cls, _kwargs: dict[str, object]) -> SharedStreamProducer:
        return Announcer()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise NotImplementedError("the triggerer must share streams, as Airflow 3.3 does")
        yield  # makes it a generator, as Airflow expects


class StreamTrigger(PolledTrigger):
    """Fires when events are committed to a stream, whoever appended them."""

    def __init__(self, stream: str) -> None:
        super().__init__()
        self.stream = str(stream_name(stream))

    def serialize(self) -> tuple[str, dict[str, object]]:
        return f"{__name__}.StreamTrigger", {"stream": self.stream}

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Found]
    ) -> AsyncIterator[TriggerEvent]:
        with waiting("events", self.stream) as one:
            async for found in shared_stream:
                row = found.rows.get(one)
                if row is not None and row.transactions:
                    yield TriggerEvent(payload_of(row))
                    # Airflow comes back for more once it has the event in its hands. If it is
                    # stopped before, this is not reached, and the event will be announced again.
                    found.told += [(self.stream, number) for number in row.transactions]


def payload_of(row: ToAnnounce) -> dict[str, object]:
    """Return what an event of Airflow says about the commits to a stream."""
    return {
        "transactions": row.transactions,
        "events": row.events,
        "bytes": row.bytes,
        "cut": row.cut,
        "epoch": row.epoch,
        "run": row.runs,
    }


class Announcer(SharedStreamProducer):
    """Polls for what is to be announced, one statement for all streams, and records what was.

    The next poll waits until Airflow has said what became of the last one, so nothing is under way
    twice.
    """

    def __init__(self) -> None:
        settings = load()
        self._airflow = settings.airflow_name
        # A triggerer has other things to do than to wait for a database: it asks again.
        self._database = Database.of(hasty(settings))
        self._seen: dict[tuple[str, str], float] = {}
        self._idle: set[tuple[str, str]] = set()  # what is queued though nobody here waits for it
        self._owed: list[tuple[str, int]] = []
        self._settled = asyncio.Event()
        self._outage = False

    async def open_stream(self) -> AsyncIterator[tuple[object, object]]:
        while True:
            if (found := await asyncio.to_thread(self._look)) is not None:
                self._settled.clear()
                yield found, found
                await self._settled.wait()
            await asyncio.sleep(EVERY)

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Record what is in Airflow's database. If Airflow gave up waiting for that, nothing is
        known to be there."""
        given_up = conf.getfloat("triggerer", "shared_stream_ack_timeout") * 0.9
        for item in batch:
            found: Found = item.broker_payload
            if not item.outcome.failed or time.monotonic() - found.begun < given_up:
                self._owed += found.told
        await asyncio.to_thread(self._trying, self._settle)
        self._settled.set()

    async def aclose(self) -> None:
        await asyncio.to_thread(self._database.dispose)

    def _look(self) -> Found | None:
        """Return what is to be announced now; None if nothing is, or Postgres is away."""
        return self._trying(self._poll)

    def _trying(self, work: Callable[[], T]) -> T | None:
        try:
            done = work()
        except WeirError as error:
            if not self._outage:
                log.warning("streams are not watched until the database is back: %s", error)
            self._outage = True
            return None
        if self._outage:
            log.info("streams are watched again")
        self._outage = False
        return done

    def _settle(self) -> None:
        owed = self._owed
        announced(self._database, self._airflow, owed)
        self._owed = self._owed[len(owed) :]

    def _poll(self) -> Found | None:
        self._settle()
        now, here = time.monotonic(), {one for one, count in list(wanted.items()) if count}
        unseen = [one for one in here if now - self._seen.get(one, -SEEN_EVERY) >= SEEN_EVERY]
        watch(self._database, self._airflow, unseen)
        self._seen.update(dict.fromkeys(unseen, now))
        self._idle -= here
        rows = to_announce(self._database, self._airflow, self._idle)
        found = {(row.kind, row.stream): row for row in rows}
        self._idle |= found.keys() - here
        found = {one: row for one, row in found.items() if one in here}
        return Found(found) if found else None


@contextmanager
def waiting(kind: str, stream: str) -> Iterator[tuple[str, str]]:
    """Count a trigger among those that wait for a kind of a stream's announcements, while the block
    runs."""
    one = kind, stream
    wanted[one] += 1
    try:
        yield one
    finally:
        wanted[one] -= 1
