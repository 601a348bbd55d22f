"""Of which commits the events of hours and days are. Made by `make queries` from sql/annex/partitions/queries/events.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

COMMITS_BETWEEN = text(
    """SELECT s.event_time, min(t.clock) AS first, max(t.clock) AS last
FROM stream s LEFT JOIN transaction t ON t.stream_name = s.stream_name
    AND t.clock > s.event_time_since AND t.min_event_time < :high AND t.max_event_time >= :low
WHERE s.stream_name = :stream AND s.state <> 'deleted' GROUP BY s.stream_id"""
)


class CommitsBetween(NamedTuple):
    """A row of `commits_between`."""

    event_time: str | None
    first: int | None
    last: int | None


def commits_between(
    connection: Connection, *, high: int, low: int, stream: str
) -> CommitsBetween | None:
    """Return the first and the last clock of the commits of a stream with event times from one up to another."""
    result = connection.execute(COMMITS_BETWEEN, {"high": high, "low": low, "stream": stream})
    row = result.one_or_none()
    return None if row is None else CommitsBetween._make(row)


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
