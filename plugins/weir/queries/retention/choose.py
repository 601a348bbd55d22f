"""What a retention would delete. Made by `make queries` from sql/queries/retention/choose.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

WOULD_TRUNCATE = text(
    """SELECT d.events, d.lost || unread_events_lost(:stream_id, d.cut, false) AS lost
FROM retention_dry_run(:stream) d WHERE d.cut IS NOT NULL"""
)


class WouldTruncate(NamedTuple):
    """A row of `would_truncate`."""

    events: int
    lost: dict[str, int]


def would_truncate(connection: Connection, *, stream_id: int, stream: str) -> WouldTruncate | None:
    """Return what the next run would truncate of a stream, and how much each group would lose."""
    result = connection.execute(WOULD_TRUNCATE, {"stream_id": stream_id, "stream": stream})
    row = result.one_or_none()
    return None if row is None else WouldTruncate._make(row)
