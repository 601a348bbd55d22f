"""How far reader groups are, and what somebody should look at. Made by `make queries` from sql/queries/pages/health.sql."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

LAG_OF_STREAMS = text(
    """SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE stream = ANY(:names) ORDER BY unread_events DESC, reader_group"""
)


class Lag(BaseModel):
    """How far a reader group is in a stream."""

    stream: str
    reader_group: str
    unread_events: int
    unread_bytes: int
    lost_events: int
    behind_since: datetime | None


def lag_of_streams(connection: Connection, *, names: Sequence[str]) -> list[Lag]:
    """Return how far groups are in streams, those with most to read first."""
    result = connection.execute(LAG_OF_STREAMS, {"names": list(names)})
    return [Lag(**row._mapping) for row in result]


LAG_OF_GROUPS = text(
    """SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE reader_group = ANY(:names) ORDER BY unread_events DESC, stream"""
)


def lag_of_groups(connection: Connection, *, names: Sequence[str]) -> list[Lag]:
    """Return how far groups are in their streams, those with most to read first."""
    result = connection.execute(LAG_OF_GROUPS, {"names": list(names)})
    return [Lag(**row._mapping) for row in result]


ALERTS_OF_STREAMS = text(
    """SELECT stream, reader_group, alert, at, message FROM weir.retention_alerts
WHERE stream = ANY(:names) ORDER BY at, reader_group"""
)


class Alert(BaseModel):
    """What somebody should look at."""

    stream: str
    reader_group: str
    alert: str
    at: datetime
    message: str


def alerts_of_streams(connection: Connection, *, names: Sequence[str]) -> list[Alert]:
    """Return what somebody should look at of streams."""
    result = connection.execute(ALERTS_OF_STREAMS, {"names": list(names)})
    return [Alert(**row._mapping) for row in result]


ALERTS_OF_GROUPS = text(
    """SELECT stream, reader_group, alert, at, message FROM weir.retention_alerts
WHERE stream = ANY(:streams) AND reader_group = ANY(:names) ORDER BY at"""
)


def alerts_of_groups(
    connection: Connection, *, streams: Sequence[str], names: Sequence[str]
) -> list[Alert]:
    """Return what somebody should look at of groups, which read these streams."""
    result = connection.execute(ALERTS_OF_GROUPS, {"streams": list(streams), "names": list(names)})
    return [Alert(**row._mapping) for row in result]
