"""The queue of streams about which retention must decide anew.

Every operation that changes what a decision depends on queues the stream in the same transaction:
by calling `mark_retention_due`, or within a statement of its own.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from weir.model.names import StreamName
from weir.queries.controller import retention_queue as sql


def mark_retention_due(connection: Connection, stream_ids: Iterable[int]) -> None:
    """Queue those of the streams that are active for a decision."""
    sql.queue(connection, ids=sorted(set(stream_ids)))


def due_streams(connection: Connection, names: Sequence[StreamName] | None) -> list[sql.DueStream]:
    """Return id and name of each active stream about which retention should decide now.

    `names`: None for the queued streams that are due; else these streams, queued or not; all active
    streams if empty.
    """
    if names is None:
        return sql.due(connection)
    return sql.active(connection, names=[str(name) for name in names], named=bool(names))


def take_due(connection: Connection, stream_id: int) -> bool:
    """Take a locked stream from the queue before its decision; return whether it was queued."""
    return sql.take(connection, stream_id=stream_id) > 0
