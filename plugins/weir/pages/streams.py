"""The list of streams: a page of rows, each with its numbers and how it is doing."""

from collections import defaultdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.model.retention_policy import Policy
from weir.pages.activity import NEWEST, WINDOWS, Activity, activity_of
from weir.pages.answering import Asked, Tagged, not_a_page, rows
from weir.pages.health import Alert, Health, Lag, health_of

router = APIRouter(route_class=Tagged, tags=["streams"])

# Now is a minute's, so that what has not changed has the same ETag.
_FOUND = """
WITH found AS MATERIALIZED (
    SELECT c.stream, s.last_clock AS changed_at, s.created_at
    FROM weir.stream_configuration c JOIN weir.stream_state s USING (stream)
    WHERE (:search = '' OR strpos(c.stream, lower(:search)) > 0)
      AND (:scope = '' OR starts_with(c.stream, :scope || '/'))
      AND (:tag = '' OR c.tags @> ARRAY[:tag])
      AND (:owner = '' OR c.owner = :owner)
      AND (:state = '' OR s.state = :state))
SELECT (SELECT count(*) FROM found) AS total, date_trunc('minute', statement_timestamp()) AS now,
    array(SELECT f.stream FROM found f {past} ORDER BY {order} LIMIT :limit + 1) AS names"""
# What rows are sorted by, which of them follow the last one of the page before, and the column
# whose value, beside the name, says where that was.
_ORDERS = {
    "name": ("f.stream", "f.stream > :name", ""),
    "changed": (
        "f.changed_at DESC, f.stream",
        "(f.changed_at, CAST(:name AS text)) < (CAST(:at AS timestamptz), f.stream)",
        "changed_at",
    ),
    "created": (
        "f.created_at DESC, f.stream",
        "(f.created_at, CAST(:name AS text)) < (CAST(:at AS timestamptz), f.stream)",
        "created_at",
    ),
}
_STREAMS = """
SELECT s.stream, s.state, s.created_at, s.last_clock AS changed_at, s.routing_key,
    s.events_retained AS events, s.bytes_retained AS bytes, s.events_appended AS appended,
    CASE WHEN s.state = 'active' THEN (SELECT count(*) FROM jsonb_object_keys(s.tail)) ELSE 0 END
        AS segments,
    c.tags, c.owner, c.retention, extract(epoch FROM c.retain_min_age)::bigint AS min_age,
    extract(epoch FROM c.retain_max_age)::bigint AS max_age, c.retain_min_bytes AS min_bytes,
    c.retain_max_bytes AS max_bytes
FROM weir.streams s JOIN weir.stream_configuration c USING (stream)
WHERE s.stream = ANY(:names)"""
_LAG = """SELECT stream, reader_group, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE stream = ANY(:names) ORDER BY unread_events DESC, reader_group"""
_ALERTS = """SELECT stream, reader_group, alert, at, message FROM weir.retention_alerts
WHERE stream = ANY(:names) ORDER BY at, reader_group"""
_DAMAGE = "SELECT stream, count(*) AS found FROM weir.damage WHERE stream = ANY(:names) GROUP BY 1"


class Facts(BaseModel):
    """A stream in numbers and in words."""

    stream: str
    state: Literal["active", "sealed"]
    created_at: datetime
    changed_at: datetime
    routing_key: str
    events: int
    bytes: int
    appended: int
    segments: int
    tags: list[str]
    owner: str | None
    retention: str  # in words
    activity: Activity
    groups: list[Lag]
    alerts: list[Alert]
    damage: int
    health: Health


class Streams(BaseModel):
    """A page of streams. `next`: what to give as `after` for the page that follows."""

    streams: list[Facts]
    total: int
    next: str | None


class Scopes(BaseModel):
    """What streams can be filtered by."""

    scopes: list[str]
    tags: list[str]
    owners: list[str]


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
    """Return the streams that are asked for, a page of them. Seven statements."""
    order, past, column = _ORDERS[sort]
    found = _FOUND.format(order=order, past=f"WHERE {past}" if after else "")
    begin = _begin(after, column) if after else {}

    def read(connection: Connection) -> Streams:
        [(total, now, names)] = rows(
            connection, found, search=search, scope=scope, tag=tag, owner=owner, state=state,
            limit=limit, **begin,
        )  # fmt: skip
        page = facts_of(connection, names[:limit], now)
        more = None
        if len(names) > limit and page:
            at = f"{getattr(page[-1], column).isoformat()} " if column else ""
            more = at + page[-1].stream
        return Streams(streams=page, total=total, next=more)

    return asked.snapshot(read)


def _begin(after: str, column: str) -> dict[str, str]:
    """Return the parameters that say where a page begins. Raises InvalidInput."""
    at, _, name = after.rpartition(" ")
    try:
        return {"name": name, **({"at": str(datetime.fromisoformat(at))} if column else {})}
    except ValueError:
        raise not_a_page(after) from None


@router.get("/scopes")
def list_scopes(asked: Asked) -> Scopes:
    """Return the scopes, tags and owners that there are. One statement."""
    found = asked.snapshot(
        lambda connection: rows(
            connection,
            """SELECT array(SELECT DISTINCT split_part(stream, '/', 1) FROM weir.stream_state
                            ORDER BY 1) AS scopes,
                array(SELECT DISTINCT unnest(tags) FROM weir.stream_configuration ORDER BY 1)
                    AS tags,
                array(SELECT DISTINCT owner FROM weir.stream_configuration
                      WHERE owner IS NOT NULL ORDER BY 1) AS owners""",
        )[0]
    )
    return Scopes(scopes=found.scopes, tags=found.tags, owners=found.owners)


def facts_of(connection: Connection, names: list[str], now: datetime) -> list[Facts]:
    """Return the facts of streams, in the order of their names that is given. Five statements."""
    of: dict[str, dict[str, list[Any]]] = {}
    for what, statement in (("lag", _LAG), ("alerts", _ALERTS), ("damage", _DAMAGE)):
        of[what] = defaultdict(list)
        for row in rows(connection, statement, names=names):
            of[what][row.stream].append(row)
    commits = {
        row.stream: row for row in rows(connection, NEWEST, names=names, since=now - WINDOWS[-1])
    }
    made = {}
    for row in rows(connection, _STREAMS, names=names):
        lags = [Lag(**one._mapping) for one in of["lag"][row.stream]]
        alerts = [Alert(**one._mapping) for one in of["alerts"][row.stream]]
        damage = sum(one.found for one in of["damage"][row.stream])
        newest = commits.get(row.stream)
        policy = Policy(row.retention, row.min_age, row.max_age, row.min_bytes, row.max_bytes)
        made[row.stream] = Facts(
            **{**row._mapping, "retention": policy.in_short},
            activity=activity_of(
                newest.clocks if newest else [], newest.events if newest else [], now
            ),
            groups=lags,
            alerts=alerts,
            damage=damage,
            health=health_of(row.state, row.events, damage, lags, alerts),
        )
    return [made[name] for name in names if name in made]
