"""What waits in a triggerer for hours and days of streams, by the poll for what is committed."""

import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import TriggerEvent

from weir.airflow.watcher import PolledTrigger, waiting, wanted
from weir.model.names import stream_name

AGAIN = 60.0  # seconds after which partitions that nobody has fetched are announced again


class WantedTrigger(PolledTrigger):
    """Never fires: it says that somebody wants the hours or the days of a stream, which the DAG
    `weir_partitions` announces."""

    def __init__(self, stream: str, kind: str) -> None:
        super().__init__()
        self.stream = str(stream_name(stream))
        self.kind = kind

    def serialize(self) -> tuple[str, dict[str, object]]:
        return f"{__name__}.WantedTrigger", {"stream": self.stream, "kind": self.kind}

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Any]
    ) -> AsyncIterator[TriggerEvent]:
        with waiting(self.kind, self.stream):
            async for _ in shared_stream:
                pass
        return
        yield  # makes it a generator, as Airflow expects


class PartitionsTrigger(PolledTrigger):
    """Fires when hours or days of streams that somebody wants may have become complete."""

    def serialize(self) -> tuple[str, dict[str, object]]:
        return f"{__name__}.PartitionsTrigger", {}

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[Any]
    ) -> AsyncIterator[TriggerEvent]:
        fired: dict[tuple[str, str], float] = {}
        async for found in shared_stream:
            now = time.monotonic()
            due = {one for one in found.rows if one[0] in ("hours", "days") and wanted[one]}
            fired = {one: at for one, at in fired.items() if one in due}
            if any(now - fired.get(one, -AGAIN) >= AGAIN for one in due):
                fired = dict.fromkeys(due, now)
                yield TriggerEvent({"partitions": [list(one) for one in sorted(due)]})
