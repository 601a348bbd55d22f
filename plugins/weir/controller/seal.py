"""Seal streams (semantics 5.3)."""

from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.commit import commit_waiting
from weir.controller.locks import LockedStream, lock_stream
from weir.controller.transactions import discard_attempts
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.names import StreamName
from weir.queries.controller import epochs
from weir.queries.controller import seal as sql


class Sealed(TypedDict):
    """A stream that is sealed. `aborted`: the numbers of the transactions that this aborted."""

    stream: str
    aborted: list[int]


def seal_stream(database: Database, name: StreamName, *, request_id: str) -> Sealed:
    """Make a stream read-only for ever; change nothing if it is sealed already.

    Appends that wait for a roll are committed, and appends that are still being written are
    aborted. Raises NotFound.
    """
    request = Request[Sealed](request_id, "seal_stream", str(name), {})

    def work(connection: Connection) -> Sealed:
        stream = lock_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        if stream.state == "sealed":
            return request.done(connection, {"stream": str(name), "aborted": []})
        stream = commit_waiting(connection, stream)
        return request.done(connection, {"stream": str(name), "aborted": _seal(connection, stream)})

    return database.transaction(work)


def _seal(connection: Connection, stream: LockedStream) -> list[int]:
    ended = sql.seal(
        connection,
        clock=epochs.tick(connection, stream_id=stream.stream_id),
        stream_id=stream.stream_id,
    )
    discard_attempts(connection, stream.stream_id, ended)
    return sorted(one.transaction_number for one in ended)
