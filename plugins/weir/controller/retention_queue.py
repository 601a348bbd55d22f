"""The queue of streams for which retention must decide anew: whatever a decision rests on changed.

Whoever changes that queues the stream in the same transaction: by a call of `mark_retention_due`,
or within a statement of its own by `queueing`.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, text

from weir.model.names import StreamName


def queueing(streams: str, at: str = "clock_timestamp()") -> str:
    """Return SQL that queues streams for a decision, due at a time.

    `streams`: what follows FROM, rows with a `stream_id`; both are constants, never input.
    """
    return f"""INSERT INTO retention_due (stream_id, due_at)
            SELECT stream_id, {at} FROM {streams}"""  # noqa: S608 - constants


_MARK = text(queueing("stream WHERE stream_id = ANY(:ids) AND state = 'active'"))


def mark_retention_due(connection: Connection, stream_ids: Iterable[int]) -> None:
    """Queue the active ones of these streams for a decision."""
    connection.execute(
        _MARK,
        {"ids": sorted(set(stream_ids))},
    )


def due_streams(
    connection: Connection, names: Sequence[StreamName] | None
) -> list[tuple[int, str]]:
    """Return id and name of each active stream that is queued and whose turn it is; or of `names`,
    queued or not, or of all active streams if `names` is empty."""
    if names is None:
        chosen = """s.stream_id IN (SELECT stream_id FROM retention_due
                                    WHERE due_at <= clock_timestamp())
            AND (s.retained_at IS NULL OR s.retention_every IS NULL
                 OR s.retained_at + s.retention_every * interval '1 second' <= clock_timestamp())"""
    else:
        chosen = "(s.scope || '/' || s.name = ANY(CAST(:names AS text[])) OR NOT :named)"
    rows = connection.execute(
        text(
            f"""SELECT s.stream_id, s.scope || '/' || s.name FROM stream s
            WHERE s.state = 'active' AND {chosen} ORDER BY s.stream_id"""  # noqa: S608 - constants
        ),
        {} if names is None else {"names": [str(n) for n in names], "named": bool(names)},
    )
    return [(row[0], row[1]) for row in rows]


def take_due(connection: Connection, stream_id: int) -> bool:
    """Take a locked stream from the queue, before its decision; return whether it was queued."""
    return bool(
        connection.execute(
            text("DELETE FROM retention_due WHERE stream_id = :s"), {"s": stream_id}
        ).rowcount
    )
