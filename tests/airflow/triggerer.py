"""A triggerer of Airflow without its database: its real manager of shared streams, and around each
trigger what `TriggerRunner.run_trigger` does. Tests say when an event is in Airflow's database."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from airflow.triggers.base import BaseEventTrigger
from airflow.triggers.shared_stream import SharedStreamManager


def in_a_loop(play: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run what triggers do, to its end."""
    asyncio.run(asyncio.wait_for(play(), 500))


class Triggerer:
    """Runs triggers in one event loop; `persists` says whether events reach the database."""

    def __init__(self, persists: bool = True) -> None:
        self.streams = SharedStreamManager()
        self.persists = persists
        self.events: list[tuple[Any, Any]] = []  # trigger, payload
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, *triggers: BaseEventTrigger) -> None:
        for trigger in triggers:
            number = len(self._tasks)
            self._tasks.append(asyncio.create_task(self._run(number, trigger)))

    async def _run(self, number: int, trigger: BaseEventTrigger) -> None:
        key = trigger.shared_stream_key()
        shared = self.streams.subscribe(trigger_id=number, trigger=trigger, key=key)
        try:
            async for event in trigger.filter_shared_stream(shared):
                await asyncio.sleep(0)  # it logs, and may be stopped there
                seq = self.streams.bind_pending_event(trigger_id=number, key=key)
                self.events.append((trigger, event.payload))
                if self.persists and seq is not None:
                    asyncio.get_running_loop().call_later(
                        0.01, self.streams.confirm_persisted, [seq]
                    )
        finally:
            await self.streams.unsubscribe(number, key)

    async def until(self, found: Callable[[], Any], seconds: float = 300.0) -> Any:
        """Wait until something is true, and return it."""
        end = time.monotonic() + seconds
        while not (answer := await asyncio.to_thread(found)):
            assert time.monotonic() < end, "waited in vain"
            await asyncio.sleep(0.02)
        return answer

    async def stop(self) -> None:
        """Stop as SIGTERM does: all triggers are cancelled, and then the shared streams."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.streams.stop_all()
