"""Transactions of streaming queries. Made by `make queries` from sql/queries/controller/micro_batches.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

OPEN_ONE = text(
    """SELECT transaction_number, attempt FROM transaction
WHERE stream_name = :stream AND writer_id = :writer_id AND batch_id = :batch_id
  AND state = 'open'"""
)


class OpenOne(NamedTuple):
    """A row of `open_one`."""

    transaction_number: int
    attempt: int


def open_one(
    connection: Connection, *, stream: str, writer_id: str, batch_id: str
) -> OpenOne | None:
    """Return the open transaction of a batch of a writer."""
    result = connection.execute(
        OPEN_ONE, {"stream": stream, "writer_id": writer_id, "batch_id": batch_id}
    )
    row = result.one_or_none()
    return None if row is None else OpenOne._make(row)


LAST_COMMITTED = text(
    """SELECT transaction_number, fingerprint, batch_id, events + rejected AS rows FROM transaction
WHERE stream_name = :stream AND writer_id = :writer_id AND state = 'committed'
ORDER BY transaction_number DESC LIMIT 1"""
)


class LastCommitted(NamedTuple):
    """A row of `last_committed`."""

    transaction_number: int
    fingerprint: str
    batch_id: str
    rows: int


def last_committed(connection: Connection, *, stream: str, writer_id: str) -> LastCommitted | None:
    """Return the last committed transaction of a writer."""
    result = connection.execute(LAST_COMMITTED, {"stream": stream, "writer_id": writer_id})
    row = result.one_or_none()
    return None if row is None else LastCommitted._make(row)


RENAME = text(
    """UPDATE transaction SET batch_id = :batch_id, fingerprint = :fingerprint
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open'"""
)


def rename(
    connection: Connection,
    *,
    batch_id: str,
    fingerprint: str,
    stream_id: int,
    number: int,
    attempt: int,
) -> None:
    """Give the transaction of an open attempt the name of its micro-batch."""
    result = connection.execute(
        RENAME,
        {
            "batch_id": batch_id,
            "fingerprint": fingerprint,
            "stream_id": stream_id,
            "number": number,
            "attempt": attempt,
        },
    )
    result.close()
