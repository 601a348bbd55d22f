"""The list of streams: a page of rows, each with its numbers and how it is doing."""

from collections import defaultdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from weir.model.retention_policy import Policy
from weir.pages.activity import Activity, activity_of, newest_commits
from weir.pages.answering import Asked, Tagged, not_a_page
from weir.pages.health import Health, health_of
from weir.queries.pages import health as health_sql
from weir.queries.pages import streams as sql
from weir.queries.pages.health import Lag, Trouble

router = APIRouter(route_class=Tagged, tags=["streams"])


class Facts(sql.Numbers):
    """A stream in numbers and in words; `retention`: in words."""

    limits: list[int | None] = Field(exclude=True)
    activity: Activity
    groups: list[Lag]
    troubles: list[Trouble]
    health: Health


class Streams(BaseModel):
    """A page of streams. `next`: what to give as `after` for the page that follows."""

    streams: list[Facts]
    total: int
    next: str | None


@router.get("/streams")
def list_streams(
    asked: Asked,
    search: Annotated[str, Query(description="a part of the name")] = "",
    scope: str = "",
    tag: str = "",
    owner: str = "",
    state: Literal["", "active", "sealed"] = "",
    sort: Literal["name", "changed", "created"] = "name",
    after: Annotated[str, Query(description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Streams:
    """Return the streams that are asked for, a page of them. Six statements."""
    at, name = "infinity", ""
    if after:
        at, name = _place(after, timed=sort != "name")

    def read(connection: Connection) -> Streams:
        found = sql.found(
            connection, search=search, scope=scope, tag=tag, owner=owner, state=state, sort=sort,
            at=at, name=name, limit=limit,
        )  # fmt: skip
        page = facts_of(connection, found.names[:limit], found.now)
        more = None
        if len(found.names) > limit and page:
            last = page[-1]
            times = {"changed": last.changed_at, "created": last.created_at}
            more = f"{times[sort].isoformat()} {last.stream}" if sort in times else last.stream
        return Streams(streams=page, total=found.total, next=more)

    return asked.snapshot(read)


def _place(after: str, *, timed: bool) -> tuple[str, str]:
    """Return the time and the name after which a page begins. Raises InvalidInput."""
    at, _, name = after.rpartition(" ")
    try:
        return (str(datetime.fromisoformat(at)) if timed else "-infinity"), name
    except ValueError:
        raise not_a_page(after) from None


@router.get("/scopes")
def list_scopes(asked: Asked) -> sql.Scopes:
    """Return the scopes, tags and owners that there are. One statement."""
    return asked.snapshot(sql.scopes)


def facts_of(connection: Connection, names: list[str], now: datetime) -> list[Facts]:
    """Return the facts of streams, in the order of their names that is given. Four statements."""
    lags, readers = defaultdict[str, list[Lag]](list), defaultdict[str, list[str]](list)
    for lag in health_sql.lag_of_streams(connection, names=names):
        lags[lag.stream].append(lag)
        if lag.behind_since is not None:  # else it is behind in another of its streams
            readers[lag.reader_group].append(lag.stream)
    troubles = defaultdict[str, list[Trouble]](list)
    found = health_sql.troubles_of_streams(connection, streams=names, groups=list(readers))
    for trouble in found:
        of_group = readers[trouble.reader_group or ""]
        for stream in of_group if trouble.stream is None else [trouble.stream]:
            troubles[stream].append(trouble)
    commits = {row.stream: row for row in newest_commits(connection, names, now)}
    made = {}
    for row in sql.numbers(connection, names=names):
        of, newest = row.stream, commits.get(row.stream)
        made[of] = Facts(
            **vars(row) | {"retention": Policy(row.retention, *row.limits).in_short},
            activity=activity_of(
                newest.clocks if newest else [], newest.events if newest else [], now
            ),
            groups=lags[of],
            troubles=troubles[of],
            health=health_of(row.state, row.events, lags[of], troubles[of]),
        )
    return [made[name] for name in names if name in made]
