"""Seal streams. Made by `make queries` from sql/queries/controller/seal.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

SEAL = text(
    """WITH sealed AS (
    UPDATE stream SET state = 'sealed', sealed_clock = :clock WHERE stream_id = :stream_id
), retained AS (  -- retention never truncates a sealed stream
    DELETE FROM retention_queue WHERE stream_id = :stream_id
)
UPDATE transaction SET state = 'aborted', ended_at = clock_timestamp(), staged = NULL
WHERE stream_id = :stream_id AND state = 'open' RETURNING transaction_number, attempt"""
)


class Ended(NamedTuple):
    """A row of `seal`."""

    transaction_number: int
    attempt: int


def seal(connection: Connection, *, clock: int, stream_id: int) -> list[Ended]:
    """Seal a locked stream, and abort and return its open appends."""
    result = connection.execute(SEAL, {"clock": clock, "stream_id": stream_id})
    return [Ended._make(row) for row in result]
