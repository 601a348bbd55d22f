"""The functions of the module `weir`. Those that name the same settings share one opened
installation, so that no call connects anew; `weir.open` gives a program one of its own."""

import inspect
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from weir.controller.queries import Cut
from weir.controller.times import Moment
from weir.controller.transactions import Committed
from weir.history.lineage import Step
from weir.programs import checkpoints
from weir.programs.opening import shared
from weir.programs.store import StreamStore
from weir.settings import Settings


def append(
    stream: str,
    rows: Any,
    *,
    writer_id: str = "",
    batch_id: str = "",
    source: str = "program",
    complete_until: datetime | str | None = None,
    settings: Settings | None = None,
) -> Committed:
    return shared(settings, source).append(
        stream, rows, writer_id=writer_id, batch_id=batch_id, complete_until=complete_until
    )


def read(
    stream: str,
    *,
    start: Cut | None = None,
    end: Cut | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    columns: Sequence[str] | None = None,
    order: str = "segment",
    schema_version: int | None = None,
    settings: Settings | None = None,
) -> pa.Table:
    return shared(settings).read(
        stream,
        start=start,
        end=end,
        since=since,
        until=until,
        columns=columns,
        order=order,
        schema_version=schema_version,
    )


def count(
    stream: str,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    settings: Settings | None = None,
) -> int:
    return shared(settings).count(stream, since=since, until=until)


def tail(
    stream: str,
    count: int = 10,
    *,
    columns: Sequence[str] | None = None,
    settings: Settings | None = None,
) -> pa.Table:
    return shared(settings).tail(stream, count, columns=columns)


def lineage(
    of: str,
    *,
    direction: str = "up",
    depth: int | None = None,
    segment: str | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
    settings: Settings | None = None,
) -> list[Step]:
    return shared(settings).lineage(
        of, direction=direction, depth=depth, segment=segment, from_offset=from_offset,
        to_offset=to_offset,
    )  # fmt: skip


def create_stream(
    stream: str, routing_key: str, *, settings: Settings | None = None, **arguments: Any
) -> dict[str, Any]:
    """Create a stream. `arguments`: those of the form of weir_create_stream, such as segments=4 or
    retention="consumed"; help(weir.StreamStore.create_stream) has all of them.

    A routing key that is a plain column needs no Spark. Returns what was created. Raises Conflict
    for a stream that exists, and InvalidInput for a wrong argument.
    """
    given = {"stream": stream, "routing_key": routing_key, **arguments}
    return shared(settings).act("create_stream", given)


def create_reader_group(
    name: str,
    streams: Sequence[str],
    *,
    start: str = "head",
    end: str = "",
    settings: Settings | None = None,
    **configuration: Any,
) -> dict[str, Any]:
    """Create a reader group over streams (`scope/stream`), from `start` to `end`: starting points
    as in the form of weir_create_reader_group. `configuration`: settings of `GroupConfiguration`,
    such as subscriber=False; allow_loss and allow_truncated. `settings`: of another installation
    than that of jobs.

    Returns its name and start, and in `missing` a line per stream of which events before its start
    were truncated. Raises NotFound for a stream, Conflict if the group exists, Truncated for a
    start below the head (unless allow_truncated=True: then it begins at the head), InvalidInput for
    wrong settings.
    """
    return checkpoints.create_group(
        shared(settings).database, name, streams, start=start, end=end, **configuration
    )


def checkpoint(
    reader_group: str,
    name: str,
    *,
    barrier: bool = False,
    patience: float = 3600.0,
    settings: Settings | None = None,
) -> dict[str, Any]:
    return shared(settings).checkpoint(reader_group, name, barrier=barrier, patience=patience)


# What a function does is said once, where it is done.
for _function, _method in (
    (append, StreamStore.append), (read, StreamStore.read), (count, StreamStore.count),
    (tail, StreamStore.tail), (lineage, StreamStore.lineage),
    (checkpoint, StreamStore.checkpoint),
):  # fmt: skip
    _function.__doc__ = (
        f"{inspect.getdoc(_method)}\n`settings`: of another installation than that of jobs "
        "(WEIR_CONFIG, or `weir.toml`)."
    )
