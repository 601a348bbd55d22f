"""Appends whose leases have expired, by a configured `lease` in seconds. Made by `make queries` from sql/queries/controller/expiry.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

LAPSED = text(
    """SELECT stream_id, transaction_number, s.stream_name AS stream
FROM transaction t JOIN stream s USING (stream_id) WHERE t.state = 'open' AND lease_is_over(t.lease_until, :lease)"""
)


class Lapsed(NamedTuple):
    """A row of `lapsed`."""

    stream_id: int
    transaction_number: int
    stream: str


def lapsed(connection: Connection, *, lease: float) -> list[Lapsed]:
    """Return the appends whose lease has expired."""
    result = connection.execute(LAPSED, {"lease": lease})
    return [Lapsed._make(row) for row in result]


STILL_LAPSED = text(
    """SELECT attempt, source FROM transaction t
WHERE stream_id = :stream_id AND transaction_number = :number AND t.state = 'open' AND lease_is_over(t.lease_until, :lease)"""
)


class StillLapsed(NamedTuple):
    """A row of `still_lapsed`."""

    attempt: int
    source: str


def still_lapsed(
    connection: Connection, *, stream_id: int, number: int, lease: float
) -> StillLapsed | None:
    """Return an append of a locked stream, if its lease has expired."""
    result = connection.execute(
        STILL_LAPSED, {"stream_id": stream_id, "number": number, "lease": lease}
    )
    row = result.one_or_none()
    return None if row is None else StillLapsed._make(row)
