"""The trigger of Weir's sensors: in a triggerer, one statement asks for all that wait, however many
they are."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from weir.database.connection import Database
from weir.errors import WeirError
from weir.reader_groups.progress import Condition, progress_of
from weir.settings import hasty, load

log = logging.getLogger("weir.airflow")

EVERY = 5.0  # seconds between two polls

_waiting: Counter[Condition] = Counter()


class ConditionTrigger(BaseEventTrigger):
    """Fires once when a condition is met: `met`; or when there is nothing left to wait for:
    `gone`."""

    def __init__(self, **condition: Any) -> None:
        super().__init__()
        self.condition = Condition(**condition)

    def serialize(self) -> tuple[str, dict[str, object]]:
        return f"{__name__}.ConditionTrigger", asdict(self.condition)

    def shared_stream_key(self) -> tuple[str, ...]:
        return ("weir conditions",)

    @classmethod
    async def open_shared_stream(cls, _kwargs: dict[str, object]) -> AsyncIterator[object]:
        database = Database.of(hasty(load()))
        try:
            while True:
                asked = [one for one, count in _waiting.items() if count]
                try:
                    answers = await asyncio.to_thread(answered, database, asked)
                except WeirError as error:
                    log.warning("sensors wait until the database is back: %s", error)
                    answers = {}
                if answers:
                    yield answers
                await asyncio.sleep(EVERY)
        finally:
            database.dispose()

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[dict[Condition, str]]
    ) -> AsyncIterator[TriggerEvent]:
        _waiting[self.condition] += 1
        try:
            async for answers in shared_stream:
                if answer := answers.get(self.condition):
                    yield TriggerEvent(answer)
                    return
        finally:
            _waiting[self.condition] -= 1
            if not _waiting[self.condition]:
                del _waiting[self.condition]

    async def run(self) -> AsyncIterator[TriggerEvent]:
        raise NotImplementedError("the triggerer must share streams, as Airflow 3.3 does")
        yield


def answered(database: Database, asked: list[Condition]) -> dict[Condition, str]:
    """Return `met` or `gone` for the conditions of which one is true."""
    if not asked:
        return {}
    found = progress_of(database, {one.thing for one in asked})
    return {
        one: "met" if one.thing in found else "gone"
        for one in asked
        if one.thing not in found or one.met(found[one.thing])
    }
