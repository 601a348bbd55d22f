"""The queue of streams about which retention must decide anew.

Every operation that changes what a decision depends on queues the stream in the same transaction:
by calling `mark_retention_due`, or within a statement of its own by `queueing`.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, text

from weir.model.names import StreamName


def queueing(streams: str, at: str = "clock_timestamp()") -> str:
    """Return SQL that queues streams for a decision.

    `streams`: what follows FROM, rows with a `stream_id`. `at`: when the decision is due. Both are
    constants, never input.
    """
    return f"""INSERT INTO retention_queue (stream_id, due_at)
            SELECT stream_id, {at} FROM {streams}"""  # noqa: S608 - constants


_MARK = text(queueing("stream WHERE stream_id = ANY(:ids) AND state = 'active'"))

_DUE = text("SELECT stream_id, stream FROM retention_due() ORDER BY stream_id")
_NAMED = text(
    """SELECT stream_id, stream_name FROM stream
    WHERE state = 'active' AND (stream_name = ANY(CAST(:names AS text[])) OR NOT :named)
    ORDER BY stream_id"""
)


def mark_retention_due(connection: Connection, stream_ids: Iterable[int]) -> None:
    """Queue those of the streams that are active for a decision."""
    connection.execute(
        _MARK,
        {"ids": sorted(set(stream_ids))},
    )


def due_streams(
    connection: Connection, names: Sequence[StreamName] | None
) -> list[tuple[int, str]]:
    """Return id and name of each active stream about which retention should decide now.

    `names`: None for the queued streams that are due; else these streams, queued or not; all active
    streams if empty.
    """
    if names is None:
        rows = connection.execute(_DUE)
    else:
        given = {"names": [str(n) for n in names], "named": bool(names)}
        rows = connection.execute(_NAMED, given)
    return [(row[0], row[1]) for row in rows]


def take_due(connection: Connection, stream_id: int) -> bool:
    """Take a locked stream from the queue before its decision; return whether it was queued."""
    return bool(
        connection.execute(
            text("DELETE FROM retention_queue WHERE stream_id = :s"), {"s": stream_id}
        ).rowcount
    )
