"""Abort the appends whose leases have expired."""

from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import lock_streams
from weir.controller.transactions import abort_in
from weir.database.connection import Database
from weir.database.once import commit_once

_LAPSED = """t.state = 'open' AND greatest(t.lease_until,
    pg_postmaster_start_time() + :lease * interval '1 second') < clock_timestamp()"""


def expire(database: Database, lease: float) -> list[dict[str, Any]]:
    """Abort the transactions whose lease has expired, each in a transaction of its own.

    If one fails, the others are still aborted. `lease`: the configured lease in seconds. A lease
    that expired less than one lease after the server's start is spared, so that its holder can come
    back.

    Returns for each `stream`, `transaction` (its number) and `source`, or the `error`.
    """
    candidates = database.transaction(
        lambda c: c.execute(
            text(
                f"""SELECT stream_id, transaction_number, s.stream_name
                FROM transaction t JOIN stream s USING (stream_id) WHERE {_LAPSED}"""  # noqa: S608 - constant
            ),
            {"lease": lease},
        ).all()
    )
    ended: list[dict[str, Any]] = []
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
) -> dict[str, Any] | None:
    stream = lock_streams(connection, ids=[stream_id])[0]
    row = connection.execute(
        text(
            f"""SELECT attempt, source FROM transaction t WHERE stream_id = :s
            AND transaction_number = :n AND {_LAPSED}"""  # noqa: S608 - constant
        ),
        {"s": stream_id, "n": number, "lease": lease},
    ).one_or_none()
    if row is None or not abort_in(connection, stream_id, number, row.attempt):
        return None
    return {"stream": str(stream.name), "transaction": number, "source": row.source}
