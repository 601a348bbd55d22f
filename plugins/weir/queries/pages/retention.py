"""What the next run of retention would do. Made by `make queries` from sql/queries/pages/retention.sql."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

DUE = text(
    """WITH due AS MATERIALIZED (
    SELECT (c.retain_max_age IS NULL AND c.retain_max_bytes IS NULL)::integer AS safe, q.stream
    FROM weir_internal.retention_due() q JOIN weir.stream_configuration c USING (stream)
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


def due(connection: Connection, *, safe: int, name: str, limit: int) -> Due:
    """Return how many streams a run decides about, how many of these have a maximum, and a page of their places."""
    result = connection.execute(DUE, {"safe": safe, "name": name, "limit": limit})
    row = result.one()
    return Due(**row._mapping)


DECIDED = text(
    """SELECT stream, due_at, retention, rule, reason, events, bytes, held_by, timed_out,
    lost, lost_to_others
FROM weir.next_retention WHERE stream = ANY(:names)"""
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


def decided(connection: Connection, *, names: Sequence[str]) -> list[Decision]:
    """Return what would be decided about streams."""
    result = connection.execute(DECIDED, {"names": list(names)})
    return [Decision(**row._mapping) for row in result]
