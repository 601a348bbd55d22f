"""What runs of retention would do by a time. Made by `make queries` from sql/queries/pages/retention.sql."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

DUE = text(
    """WITH due AS MATERIALIZED (
    SELECT (c.retain_max_age IS NULL AND c.retain_max_bytes IS NULL)::integer AS safe, q.stream
    FROM weir_internal.retention_due(:at) q JOIN weir.stream_configuration c USING (stream)
    WHERE c.retention <> 'keep')
SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM due WHERE safe = 0) AS limited,
    array(SELECT d.safe || ' ' || d.stream FROM due d
          WHERE (d.safe, d.stream) > (:safe, CAST(:name AS text))
          ORDER BY d.safe, d.stream LIMIT CAST(:limit AS bigint) + 1) AS places"""
)


class Due(BaseModel):
    """A row of `due`."""

    due: int
    limited: int
    places: list[str]


def due(connection: Connection, *, at: datetime, safe: int, name: str, limit: int) -> Due:
    """Return how many streams runs decide about by a time, how many of these have a maximum, and a page of their places."""
    result = connection.execute(DUE, {"at": at, "safe": safe, "name": name, "limit": limit})
    row = result.one()
    return Due(**row._mapping)


DECIDED = text(
    """SELECT stream, due_at, retention, rule, reason, events, bytes, held_by, timed_out,
    lost, lost_to_others
FROM weir.retention_by(:at) WHERE stream = ANY(:names)"""
)


class Decision(BaseModel):
    """What would be decided about a stream. `lost`, `lost_to_others`: unread events by subscriber, and by group that is no subscriber."""

    stream: str
    due_at: datetime
    retention: str
    rule: str
    reason: str
    events: int
    bytes: int
    held_by: list[str]
    timed_out: list[str]
    lost: dict[str, int]
    lost_to_others: dict[str, int]


def decided(connection: Connection, *, at: datetime, names: Sequence[str]) -> list[Decision]:
    """Return what would be decided about streams by a time."""
    result = connection.execute(DECIDED, {"at": at, "names": list(names)})
    return [Decision(**row._mapping) for row in result]


GOES = text(
    """SELECT s.stream_name AS stream, a.at, d.bytes, d.rule, d.reason
FROM stream s CROSS JOIN unnest(CAST(:times AS timestamptz[])) AS a (at)
CROSS JOIN LATERAL decide_retention(s.stream_id, a.at) d
WHERE s.stream_name = ANY(:names) AND s.state = 'active' AND s.retention <> 'keep'
ORDER BY 1, 2"""
)


class Goes(BaseModel):
    """What retention truncates of a stream by a time, and why."""

    stream: str
    at: datetime
    bytes: int
    rule: str
    reason: str


def goes(connection: Connection, *, times: Sequence[datetime], names: Sequence[str]) -> list[Goes]:
    """Return what goes of streams by each of some times, as far as retention decides about them."""
    result = connection.execute(GOES, {"times": list(times), "names": list(names)})
    return [Goes(**row._mapping) for row in result]
