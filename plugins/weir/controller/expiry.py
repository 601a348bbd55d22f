"""Abort the appends whose leases have expired."""

from functools import partial
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import lock_streams
from weir.controller.transactions import abort_in
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.controller import expiry as sql


class Aborted(TypedDict):
    """A transaction that was aborted, or the `error` with which that failed."""

    stream: str
    transaction: int
    source: NotRequired[str]
    error: NotRequired[str]


def expire(database: Database, lease: float) -> list[Aborted]:
    """Abort the transactions whose lease has expired, each in a transaction of its own.

    If one fails, the others are still aborted. `lease`: the configured lease in seconds. A lease
    that expired less than one lease after the server's start is spared, so that its holder can come
    back.
    """
    candidates = database.transaction(partial(sql.lapsed, lease=lease))
    ended: list[Aborted] = []
    for stream_id, number, name in candidates:
        one = partial(_expire_one, stream_id=stream_id, number=number, lease=lease)
        done, failed = database.one_of_many(f"stream {name}", partial(commit_once, database, one))
        if failed:
            ended.append({"stream": name, "transaction": number, "error": failed})
        elif done is not None:
            ended.append(done)
    return ended


def _expire_one(
    connection: Connection, stream_id: int, number: int, lease: float
) -> Aborted | None:
    stream = lock_streams(connection, ids=[stream_id])[0]
    row = sql.still_lapsed(connection, stream_id=stream_id, number=number, lease=lease)
    if row is None or not abort_in(connection, stream_id, number, row.attempt):
        return None
    return {"stream": str(stream.name), "transaction": number, "source": row.source}
