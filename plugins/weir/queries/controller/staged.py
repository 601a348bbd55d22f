"""Appends that are written and wait for a roll. Made by `make queries` from sql/queries/controller/staged.sql."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

ANNOUNCE = text(
    """UPDATE transaction SET staged = CAST(:staged AS jsonb)
WHERE stream_id = :stream_id AND transaction_number = :number AND attempt = :attempt
  AND state = 'open'"""
)


def announce(
    connection: Connection, *, staged: str, stream_id: int, number: int, attempt: int
) -> None:
    """Record that an append is written and waits for a roll, so that a roll may commit it."""
    result = connection.execute(
        ANNOUNCE, {"staged": staged, "stream_id": stream_id, "number": number, "attempt": attempt}
    )
    result.close()


WAITING = text(
    """SELECT transaction_number, attempt, staged FROM transaction
WHERE stream_id = :stream_id AND staged IS NOT NULL AND epoch = :epoch
ORDER BY transaction_number"""
)


class Waiting(NamedTuple):
    """A row of `waiting`."""

    transaction_number: int
    attempt: int
    staged: Any


def waiting(connection: Connection, *, stream_id: int, epoch: int) -> list[Waiting]:
    """Return the appends of an epoch that wait for a roll, in the order in which they began."""
    result = connection.execute(WAITING, {"stream_id": stream_id, "epoch": epoch})
    return [Waiting._make(row) for row in result]


WAITING_EPOCHS = text(
    """SELECT DISTINCT epoch FROM transaction
WHERE stream_id = :stream_id AND staged IS NOT NULL ORDER BY epoch"""
)


def waiting_epochs(connection: Connection, *, stream_id: int) -> list[int]:
    """Return the epochs in which appends began that wait for a roll."""
    result = connection.execute(WAITING_EPOCHS, {"stream_id": stream_id})
    return [row[0] for row in result]
