"""Which event times commits have that may be late. Made by `make queries` from sql/annex/partitions/queries/events.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

COMMIT = text(
    """SELECT s.event_time, t.clock, t.min_event_time, t.max_event_time
FROM stream s JOIN transaction t ON t.stream_id = s.stream_id
WHERE s.stream_name = :stream AND s.state <> 'deleted' AND t.transaction_number = :number"""
)


class Commit(NamedTuple):
    """A row of `commit`."""

    event_time: str | None
    clock: int
    min_event_time: int
    max_event_time: int


def commit(connection: Connection, *, stream: str, number: int) -> Commit | None:
    """Return the event times of a commit."""
    result = connection.execute(COMMIT, {"stream": stream, "number": number})
    row = result.one_or_none()
    return None if row is None else Commit._make(row)
