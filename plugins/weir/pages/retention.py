"""What the next run of retention would do: the streams that it decides about, a few at a time,
those first of which a maximum may truncate what nobody has read."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.pages.answering import Asked, Tagged, not_a_page, rows

router = APIRouter(route_class=Tagged, tags=["retention"])

# A decision takes up to ten milliseconds, so an answer has ten of them.
_DUE = """
WITH due AS MATERIALIZED (
    SELECT (c.retain_max_age IS NULL AND c.retain_max_bytes IS NULL)::integer AS safe, q.stream
    FROM weir_internal.retention_due() q JOIN weir.stream_configuration c USING (stream)
    WHERE c.retention <> 'keep')
SELECT (SELECT count(*) FROM due) AS due, (SELECT count(*) FROM due WHERE safe = 0) AS limited,
    array(SELECT d.safe || ' ' || d.stream FROM due d
          WHERE (d.safe, d.stream) > (:safe, CAST(:name AS text))
          ORDER BY d.safe, d.stream LIMIT :limit + 1) AS places"""
_DECIDED = """SELECT stream, due_at, retention, rule, reason, events, bytes, held_by, timed_out,
    lost, lost_to_others
FROM weir.next_retention WHERE stream = ANY(:names)"""


class Decision(BaseModel):
    """What would be decided about a stream. `lost`, `lost_to_others`: unread events by subscriber,
    and by group that is no subscriber."""

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


class NextRetention(BaseModel):
    """Some of the decisions. `due`: about how many streams a run would decide; `limited`: how many
    of these have a maximum, which does not wait for subscribers; they come first."""

    decisions: list[Decision]
    due: int
    limited: int
    next: str | None


@router.get("/retention")
def list_decisions(
    asked: Asked,
    after: Annotated[str, Query(description="`next` of the answer before")] = "",
    limit: Annotated[int, Query(ge=1, le=10)] = 10,
) -> NextRetention:
    """Return what a run of retention would decide if it began now, about some streams. It locks and
    changes nothing. Two statements."""
    safe, _, name = (after or "0 ").partition(" ")
    if safe not in ("0", "1"):
        raise not_a_page(after)

    def read(connection: Connection) -> NextRetention:
        [(due, limited, places)] = rows(connection, _DUE, safe=int(safe), name=name, limit=limit)
        names = [place.partition(" ")[2] for place in places[:limit]]
        made = {row.stream: row for row in rows(connection, _DECIDED, names=names)}
        return NextRetention(
            decisions=[Decision(**made[one]._mapping) for one in names if one in made],
            due=due,
            limited=limited,
            next=places[limit - 1] if len(places) > limit else None,
        )

    return asked.snapshot(read)
