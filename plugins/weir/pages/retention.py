"""What runs of retention would do, now or by a later time if nothing else happened: the streams
that they decide about, a few at a time, those first of which a maximum may truncate what nobody has
read."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.pages.answering import Asked, Tagged, not_a_page
from weir.queries.pages import retention as sql

router = APIRouter(route_class=Tagged, tags=["retention"])


class NextRetention(BaseModel):
    """Some of the decisions. `due`: about how many streams a run would decide; `limited`: how many
    of these have a maximum, which does not wait for subscribers; they come first."""

    decisions: list[sql.Decision]
    due: int
    limited: int
    next: str | None


def by_midnight(days: int) -> datetime:
    """Return the next midnight (1), or a later one."""
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day + timedelta(days=days)


@router.get("/retention")
def list_decisions(
    asked: Asked,
    after: Annotated[str, Query(description="`next` of the answer before")] = "",
    limit: Annotated[int, Query(ge=1, le=10)] = 10,  # a decision takes up to ten milliseconds
    days: Annotated[int, Query(ge=0, le=366, description="0: now; n: by the nth midnight")] = 0,
) -> NextRetention:
    """Return what a run of retention would decide if it began now, about some streams; or what runs
    decide by a midnight (UTC), if nothing is appended, read or released. It locks and changes
    nothing. Two statements."""
    safe, _, name = (after or "0 ").partition(" ")
    if safe not in ("0", "1"):
        raise not_a_page(after)

    def read(connection: Connection) -> NextRetention:
        at = by_midnight(days) if days else datetime.now(UTC)
        due = sql.due(connection, at=at, safe=int(safe), name=name, limit=limit)
        names = [place.partition(" ")[2] for place in due.places[:limit]]
        made = {row.stream: row for row in sql.decided(connection, at=at, names=names)}
        return NextRetention(
            decisions=[made[one] for one in names if one in made],
            due=due.due,
            limited=due.limited,
            next=due.places[limit - 1] if len(due.places) > limit else None,
        )

    return asked.snapshot(read)
