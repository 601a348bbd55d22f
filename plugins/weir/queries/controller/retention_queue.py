"""The queue of streams about which retention must decide anew. Made by `make queries` from sql/queries/controller/retention_queue.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

QUEUE = text(
    """INSERT INTO retention_queue (stream_id, due_at)
SELECT stream_id, clock_timestamp() FROM stream WHERE stream_id = ANY(:ids) AND state = 'active'"""
)


def queue(connection: Connection, *, ids: Sequence[int]) -> None:
    """Queue those of the streams that are active for a decision."""
    result = connection.execute(QUEUE, {"ids": list(ids)})
    result.close()


DUE = text("""SELECT stream_id, stream FROM retention_due() ORDER BY stream_id""")


class DueStream(NamedTuple):
    """A row of `due`."""

    stream_id: int
    stream: str


def due(connection: Connection) -> list[DueStream]:
    """Return the queued streams that are due."""
    result = connection.execute(DUE)
    return [DueStream._make(row) for row in result]


ACTIVE = text(
    """SELECT stream_id, stream_name AS stream FROM stream
WHERE state = 'active' AND (stream_name = ANY(CAST(:names AS text[])) OR NOT :named)
ORDER BY stream_id"""
)


def active(connection: Connection, *, names: Sequence[str], named: bool) -> list[DueStream]:
    """Return the active streams of these names; all, unless `named`."""
    result = connection.execute(ACTIVE, {"names": list(names), "named": named})
    return [DueStream._make(row) for row in result]


TAKE = text("""DELETE FROM retention_queue WHERE stream_id = :stream_id""")


def take(connection: Connection, *, stream_id: int) -> int:
    """Take a locked stream from the queue."""
    result = connection.execute(TAKE, {"stream_id": stream_id})
    return result.rowcount
