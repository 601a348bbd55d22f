"""How far groups are. Made by `make queries` from sql/queries/reader_groups/groups/lag.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

LAG = text(
    """SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
    extract(epoch FROM lag)::double precision AS seconds,
    extract(epoch FROM waiting)::double precision AS waiting
FROM lag WHERE reader_group = ANY(:groups) ORDER BY reader_group, stream"""
)


class Lag(NamedTuple):
    """A row of `lag`."""

    reader_group: str
    stream: str
    unread_events: int
    unread_bytes: int
    lost_events: int
    seconds: float | None
    waiting: float | None


def lag(connection: Connection, *, groups: Sequence[str]) -> list[Lag]:
    """Return how far groups are in each of their streams."""
    result = connection.execute(LAG, {"groups": list(groups)})
    return [Lag._make(row) for row in result]
