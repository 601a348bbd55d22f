"""Say what a retention that is chosen for a stream will delete, and refuse it if reader groups
would lose unread events by it (semantics 11.9)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.controller.update import Choosing
from weir.errors import counted
from weir.model.stream_configuration import Configuration
from weir.queries.reader_groups.groups.releases import Released
from weir.queries.retention import choose as sql
from weir.reader_groups.groups.releases import more_lost, released, said_of_groups, would_lose


def choosing(allow_loss: bool) -> Choosing:
    """Return what `update_stream` is to do around a change of the retention policy: it gets the
    lines that say what will be deleted. It raises Conflict if groups would lose unread events by
    the change, unless `allow_loss`."""

    @contextmanager
    def around(
        connection: Connection, stream: LockedStream, configuration: Configuration
    ) -> Iterator[list[str]]:
        lines: list[str] = []
        new = replace(stream, configuration=configuration)
        before = _would_delete(connection, stream)
        yield lines
        after = _would_delete(connection, new)
        name, lost = str(stream.name), more_lost(before, after)
        if lost and not allow_loss:
            raise would_lose(
                f"the retention that is chosen for stream {name} would delete {after.events:,} "
                "events that are there",
                lost,
                "let these read first, make them subscribers, or choose another retention",
            )
        lines.append(configuration.retention_policy.said_of(name))
        if more := max(after.events - before.events, 0):
            lines.append(f"that concerns {counted(more, 'event')} of {name} that are there")
        lines += said_of_groups(name, lost, after)

    return around


def _would_delete(connection: Connection, stream: LockedStream) -> Released:
    """Return what retention may delete of a stream by its subscribers, or would by a maximum in its
    next run."""
    policy = stream.configuration.retention_policy
    if not policy.by_consumption and not policy.has_maximum:
        return Released(stream.stream_id, 0, {}, {}, None)
    one = released(connection, [stream])[stream.stream_id]
    if not policy.has_maximum:
        return one
    row = sql.would_truncate(connection, stream_id=stream.stream_id, stream=str(stream.name))
    if row is None:
        return one
    lost = {
        name: max(one.lost.get(name, 0), row.lost.get(name, 0)) for name in {*one.lost, *row.lost}
    }
    return one._replace(events=max(one.events, row.events), lost=lost)
