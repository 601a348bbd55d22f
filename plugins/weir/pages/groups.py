"""The reader groups: a page of them, and one in full."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import NotFound
from weir.pages.answering import Asked, Tagged, rows
from weir.pages.health import Alert, Health, Lag, health_of_group

router = APIRouter(route_class=Tagged, tags=["reader groups"])

NEWEST = 20  # batches and checkpoints that are shown
MOST = 1000  # positions that are shown

_FOUND = """
WITH found AS MATERIALIZED (
    SELECT g.reader_group FROM weir.reader_groups g
    WHERE :search = '' OR strpos(g.reader_group, lower(:search)) > 0)
SELECT (SELECT count(*) FROM found) AS total,
    array(SELECT f.reader_group FROM found f WHERE f.reader_group > :after
          ORDER BY f.reader_group LIMIT :limit + 1) AS names"""
_GROUPS = """
SELECT reader_group, subscriber, release, time_out, created_at, moved_at AS active_at, readers,
    open_batches, checkpoint, checkpoint_at, at_end, aligned, max_ahead, max_outstanding, on_gap,
    subject
FROM weir.reader_groups WHERE reader_group = ANY(:names)"""
_LAG = """SELECT reader_group, stream, unread_events, unread_bytes, lost_events, behind_since
FROM weir.lag WHERE reader_group = ANY(:names) ORDER BY unread_events DESC, stream"""
_ALERTS = """SELECT a.reader_group, a.alert, a.at, a.message FROM weir.retention_alerts a
WHERE a.stream = ANY(:streams) AND a.reader_group = ANY(:names) ORDER BY a.at"""
_POSITIONS = f"""SELECT stream, segment, key_low, key_high, state, next_offset, unread_events,
    reader_id
FROM weir.positions WHERE reader_group = :group
ORDER BY stream, key_low, segment LIMIT {MOST}"""  # noqa: S608 - a constant
_READERS = """SELECT reader_id, joined_at, nullif(lease_until, 'infinity') AS lease_until,
    lease_expired, segments, unread_events, batch_id, read_rate
FROM weir.readers WHERE reader_group = :group ORDER BY reader_id"""
_BATCHES = f"""SELECT batch_id AS number, state, reader_id, attempt, events, bytes, opened_at,
    ended_at, rejected, error, function
FROM weir.batches WHERE reader_group = :group
ORDER BY batch_id DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
_WAITING = """SELECT reader_id, reason, waits_for, batch_id, stream, segment,
    oldest_unread AS since, lease_expired
FROM weir.waiting_readers WHERE reader_group = :group
UNION ALL
SELECT NULL, 'checkpoint ' || checkpoint, reader_id, batch_id, NULL, NULL, created_at, lease_expired
FROM weir.checkpoint_blockers WHERE reader_group = :group
ORDER BY 1 NULLS LAST, 3, 4 LIMIT 100"""
_CHECKPOINTS = f"""SELECT checkpoint AS name, kind, state, created_at, expires_at, released,
    count(*) AS streams
FROM weir.checkpoints WHERE reader_group = :group
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY created_at DESC LIMIT {NEWEST}"""  # noqa: S608 - a constant
_CATCH_UP = """SELECT append_rate, read_rate, catch_up
FROM weir.catch_up WHERE reader_group = :group"""
_HELD = """SELECT stream, held_events, held_bytes, released_at, times_out_at, timed_out, loses_after
FROM weir.subscribers WHERE reader_group = :group ORDER BY held_bytes DESC, stream"""


class StreamLag(Lag):
    """How far the group is in one of its streams."""

    stream: str


class GroupFacts(BaseModel):
    """A reader group in numbers and in words."""

    reader_group: str
    subscriber: bool
    release: str | None
    time_out: timedelta | None
    created_at: datetime
    active_at: datetime
    readers: int
    open_batches: int
    checkpoint: str | None
    checkpoint_at: datetime | None
    at_end: bool
    aligned: bool
    max_ahead: timedelta | None
    max_outstanding: int | None
    on_gap: str
    subject: str
    streams: list[StreamLag]
    alerts: list[Alert]
    health: Health


class Groups(BaseModel):
    """A page of reader groups. `next`: what to give as `after` for the page that follows."""

    groups: list[GroupFacts]
    total: int
    next: str | None


class Position(BaseModel):
    """Where the group is in a segment, and whose the segment is."""

    stream: str
    segment: str
    key_low: float
    key_high: float
    state: str
    next_offset: int | None
    unread_events: int
    reader_id: str | None


class Reader(BaseModel):
    """A reader that has joined."""

    reader_id: str
    joined_at: datetime
    lease_until: datetime | None  # null: it is a streaming query, whose lease does not end
    lease_expired: bool
    segments: int
    unread_events: int
    batch_id: int | None
    read_rate: float | None


class Batch(BaseModel):
    """What a reader read at once."""

    number: int
    state: str
    reader_id: str | None
    attempt: int
    events: int | None
    bytes: int | None
    opened_at: datetime
    ended_at: datetime | None
    rejected: int | None
    error: str | None
    function: str | None


class Waiting(BaseModel):
    """Who waits for whom: a reader because of a setting, or a checkpoint for a batch."""

    reader_id: str | None
    reason: str
    waits_for: str | None
    batch_id: int | None
    stream: str | None
    segment: str | None
    since: datetime | None
    lease_expired: bool


class Checkpoint(BaseModel):
    """A checkpoint of the group."""

    name: str
    kind: str
    state: str
    created_at: datetime
    expires_at: datetime | None
    released: bool
    streams: int


class CatchUp(BaseModel):
    """How fast it reads beside what is appended, by the last hour."""

    append_rate: float
    read_rate: float | None
    catch_up: timedelta | None


class Held(BaseModel):
    """What the subscriber makes a stream keep."""

    stream: str
    held_events: int
    held_bytes: int
    released_at: datetime | None
    times_out_at: datetime | None
    timed_out: bool
    loses_after: datetime | None


class Group(BaseModel):
    """A reader group in full."""

    facts: GroupFacts
    catch_up: CatchUp | None
    positions: list[Position]
    readers: list[Reader]
    batches: list[Batch]
    waiting: list[Waiting]
    checkpoints: list[Checkpoint]
    held: list[Held]


@router.get("/groups")
def list_groups(
    asked: Asked,
    search: Annotated[str, Query(description="a part of the name")] = "",
    after: Annotated[str, Query(description="`next` of the page before")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Groups:
    """Return the reader groups that are asked for, a page of them. Five statements."""

    def read(connection: Connection) -> Groups:
        [(total, names)] = rows(connection, _FOUND, search=search, after=after, limit=limit)
        page = _facts_of(connection, names[:limit])
        more = names[limit - 1] if len(names) > limit else None
        return Groups(groups=page, total=total, next=more)

    return asked.snapshot(read)


@router.get("/groups/{name}")
def show_group(asked: Asked, name: str) -> Group:
    """Return all about a reader group. Eleven statements."""

    def read(connection: Connection) -> Group:
        def of(statement: str) -> list[dict[str, Any]]:
            return [dict(row._mapping) for row in rows(connection, statement, group=name)]

        found = _facts_of(connection, [name])
        if not found:
            raise NotFound("group_not_found", f"there is no reader group {name}.")
        rates = of(_CATCH_UP)
        return Group(
            facts=found[0],
            catch_up=CatchUp(**rates[0]) if rates else None,
            positions=[Position(**row) for row in of(_POSITIONS)],
            readers=[Reader(**row) for row in of(_READERS)],
            batches=[Batch(**row) for row in of(_BATCHES)],
            waiting=[Waiting(**row) for row in of(_WAITING)],
            checkpoints=[Checkpoint(**row) for row in of(_CHECKPOINTS)],
            held=[Held(**row) for row in of(_HELD)] if found[0].subscriber else [],
        )

    return asked.snapshot(read)


def _facts_of(connection: Connection, names: list[str]) -> list[GroupFacts]:
    """Return the facts of groups, in the order of their names that is given. Three statements."""
    lags: dict[str, list[StreamLag]] = defaultdict(list)
    for row in rows(connection, _LAG, names=names):
        lags[row.reader_group].append(StreamLag(**row._mapping))
    streams = sorted({one.stream for some in lags.values() for one in some})
    alerts: dict[str, list[Alert]] = defaultdict(list)
    for row in rows(connection, _ALERTS, names=names, streams=streams):
        alerts[row.reader_group].append(Alert(**row._mapping))
    made = {}
    for row in rows(connection, _GROUPS, names=names):
        of = row.reader_group
        made[of] = GroupFacts(
            **row._mapping,
            streams=lags[of],
            alerts=alerts[of],
            health=health_of_group(row.readers, row.at_end, lags[of], alerts[of]),
        )
    return [made[name] for name in names if name in made]
