"""The reader groups: a page of them, and one in full."""

from collections import defaultdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged
from weir.pages.health import Health, health_of_group
from weir.queries.pages import groups as sql
from weir.queries.pages import health as health_sql
from weir.queries.pages.health import Lag, Trouble

router = APIRouter(route_class=Tagged, tags=["reader groups"])

NEWEST = 20  # batches and checkpoints that are shown
MOST = 1000  # positions that are shown


class GroupFacts(sql.Numbers):
    """A reader group in numbers and in words."""

    streams: list[Lag]
    troubles: list[Trouble]
    health: Health


class Groups(BaseModel):
    """A page of reader groups. `next`: what to give as `after` for the page that follows."""

    groups: list[GroupFacts]
    total: int
    next: str | None


class Group(BaseModel):
    """A reader group in full."""

    facts: GroupFacts
    catch_up: sql.CatchUp | None
    positions: list[sql.Position]
    readers: list[sql.Reader]
    batches: list[sql.Batch]
    waiting: list[sql.Waiting]
    checkpoints: list[sql.Checkpoint]
    held: list[sql.Held]


@router.get("/groups")
def list_groups(
    asked: Asked,
    search: Annotated[str, Query(description="a part of the name")] = "",
    after: Annotated[str, Query(description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Groups:
    """Return the reader groups that are asked for, a page of them. Five statements."""

    def read(connection: Connection) -> Groups:
        found = sql.found(connection, search=search, after=after, limit=limit)
        page = _facts_of(connection, found.names[:limit])
        more = found.names[limit - 1] if len(found.names) > limit else None
        return Groups(groups=page, total=found.total, next=more)

    return asked.snapshot(read)


@router.get("/groups/{name}")
def show_group(asked: Asked, name: str) -> Group:
    """Return all about a reader group. Eleven statements."""

    def read(c: Connection) -> Group:
        found = _facts_of(c, [name])
        if not found:
            raise NotFound("group_not_found", f"there is no reader group {name}.")
        return Group(
            facts=found[0],
            catch_up=sql.catch_up(c, group=name),
            positions=sql.positions(c, group=name, most=MOST),
            readers=sql.readers(c, group=name),
            batches=sql.batches(c, group=name, most=NEWEST),
            waiting=sql.waiting(c, group=name),
            checkpoints=sql.checkpoints(c, group=name, most=NEWEST),
            held=sql.held(c, group=name) if found[0].subscriber else [],
        )

    return asked.snapshot(read)


def _facts_of(connection: Connection, names: list[str]) -> list[GroupFacts]:
    """Return the facts of groups, in the order of their names that is given. Three statements."""
    lags, troubles = defaultdict[str, list[Lag]](list), defaultdict[str, list[Trouble]](list)
    for lag in health_sql.lag_of_groups(connection, names=names):
        lags[lag.reader_group].append(lag)
    streams = sorted({one.stream for some in lags.values() for one in some})
    for trouble in health_sql.troubles_of_groups(connection, groups=names, streams=streams):
        troubles[trouble.reader_group or ""].append(trouble)
    made = {}
    for row in sql.numbers(connection, names=names):
        of = row.reader_group
        made[of] = GroupFacts(
            **vars(row),
            streams=lags[of],
            troubles=troubles[of],
            health=health_of_group(row.readers, row.at_end, lags[of], troubles[of]),
        )
    return [made[name] for name in names if name in made]
