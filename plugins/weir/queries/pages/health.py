"""How far reader groups are, and what somebody should look at. Made by `make queries` from sql/queries/pages/health.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

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


TROUBLES = text(
    """SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles
WHERE query -> 'dag_id' IS NULL OR CAST(:dags AS text[]) IS NULL OR query ->> 'dag_id' = ANY(CAST(:dags AS text[]))
LIMIT :most"""
)


class Trouble(BaseModel):
    """What is wrong and somebody should do something about."""

    kind: str
    severity: Literal["red", "amber"]
    subject: str
    stream: str | None
    reader_group: str | None
    since: datetime | None
    words: str
    sentence: str
    advice: str
    action: str | None
    given: dict[str, object]
    page: str | None
    query: dict[str, object]


def troubles(connection: Connection, *, dags: Sequence[str] | None, most: int) -> list[Trouble]:
    """Return what is wrong now, in the order in which it is found; of runs, only of these DAGs (null: of all)."""
    result = connection.execute(
        TROUBLES, {"dags": None if dags is None else list(dags), "most": most}
    )
    return [Trouble(**row._mapping) for row in result]


TROUBLES_OF_STREAMS = text(
    """SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream = ANY(:streams)
UNION ALL
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream IS NULL AND reader_group = ANY(:groups)"""
)


def troubles_of_streams(
    connection: Connection, *, streams: Sequence[str], groups: Sequence[str]
) -> list[Trouble]:
    """Return what is wrong with streams, and with groups wherever they read."""
    result = connection.execute(
        TROUBLES_OF_STREAMS, {"streams": list(streams), "groups": list(groups)}
    )
    return [Trouble(**row._mapping) for row in result]


TROUBLES_OF_GROUPS = text(
    """SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream = ANY(:streams) AND reader_group = ANY(:groups)
UNION ALL
SELECT kind, severity, subject, stream, reader_group, since, words, sentence, advice, action, given, page, query
FROM weir.troubles WHERE stream IS NULL AND reader_group = ANY(:groups)"""
)


def troubles_of_groups(
    connection: Connection, *, streams: Sequence[str], groups: Sequence[str]
) -> list[Trouble]:
    """Return what is wrong with groups, which read these streams."""
    result = connection.execute(
        TROUBLES_OF_GROUPS, {"streams": list(streams), "groups": list(groups)}
    )
    return [Trouble(**row._mapping) for row in result]
