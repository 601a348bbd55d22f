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

    `names`: None for the queued streams that are due and whose `retention_every` has passed; else
    these streams, queued or not; all active streams if empty.
    """
    if names is None:
        chosen = """s.stream_id IN (SELECT stream_id FROM retention_queue
                                    WHERE due_at <= clock_timestamp())
            AND (s.retained_at IS NULL OR s.retention_every IS NULL
                 OR s.retained_at + s.retention_every * interval '1 second' <= clock_timestamp())"""
    else:
        chosen = "(s.stream_name = ANY(CAST(:names AS text[])) OR NOT :named)"
    rows = connection.execute(
        text(
            f"""SELECT s.stream_id, s.stream_name FROM stream s
            WHERE s.state = 'active' AND {chosen} ORDER BY s.stream_id"""  # noqa: S608 - constants
        ),
        {} if names is None else {"names": [str(n) for n in names], "named": bool(names)},
    )
    return [(row[0], row[1]) for row in rows]


def take_due(connection: Connection, stream_id: int) -> bool:
    """Take a locked stream from the queue before its decision; return whether it was queued."""
    return bool(
        connection.execute(
            text("DELETE FROM retention_queue WHERE stream_id = :s"), {"s": stream_id}
        ).rowcount
    )
