"""Seal streams (semantics 5.3)."""

from typing import Any

from sqlalchemy import Connection, text

from weir.controller.commit import commit_waiting
from weir.controller.epochs import tick
from weir.controller.locks import LockedStream, lock_stream
from weir.controller.transactions import discard_attempts
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.names import StreamName


def seal_stream(database: Database, name: StreamName, *, request_id: str) -> dict[str, Any]:
    """Make a stream read-only for ever; change nothing if it is sealed already.

    Appends that wait for a roll are committed, and appends that are still being written are
    aborted. Returns `stream` and `aborted` (the numbers of those transactions). Raises NotFound.
    """
    request = Request(request_id, "seal_stream", str(name), {})

    def work(connection: Connection) -> dict[str, Any]:
        stream = lock_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        if stream.state == "sealed":
            return request.done(connection, {"stream": str(name), "aborted": []})
        stream = commit_waiting(connection, stream)
        return request.done(connection, {"stream": str(name), "aborted": _seal(connection, stream)})

    return database.transaction(work)


def _seal(connection: Connection, stream: LockedStream) -> list[int]:
    clock = tick(connection, stream)
    ended = connection.execute(
        text(
            """WITH sealed AS (
                UPDATE stream SET state = 'sealed', sealed_clock = :clock WHERE stream_id = :s
            ), retained AS (  -- retention never truncates a sealed stream
                DELETE FROM retention_queue WHERE stream_id = :s
            )
            UPDATE transaction SET state = 'aborted', ended_at = clock_timestamp(), staged = NULL
            WHERE stream_id = :s AND state = 'open' RETURNING transaction_number, attempt"""
        ),
        {"s": stream.stream_id, "clock": clock},
    ).all()
    discard_attempts(
        connection, stream.stream_id, [(row.transaction_number, row.attempt) for row in ended]
    )
    return sorted(row.transaction_number for row in ended)
