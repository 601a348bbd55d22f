"""The reader groups. Made by `make queries` from sql/queries/pages/groups.sql."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import Connection, text

FOUND = text(
    """WITH found AS MATERIALIZED (
    SELECT g.reader_group FROM weir.reader_groups g
    WHERE :search = '' OR strpos(g.reader_group, lower(:search)) > 0)
SELECT (SELECT count(*) FROM found) AS total,
    array(SELECT f.reader_group FROM found f WHERE f.reader_group > :after
          ORDER BY f.reader_group LIMIT CAST(:limit AS bigint) + 1) AS names"""
)


class Found(BaseModel):
    """A row of `found`."""

    total: int
    names: list[str]


def found(connection: Connection, *, search: str, after: str, limit: int) -> Found:
    """Return a page of the names of groups, one more than `limit`, and how many there are in all."""
    result = connection.execute(FOUND, {"search": search, "after": after, "limit": limit})
    row = result.one()
    return Found(**row._mapping)


NUMBERS = text(
    """SELECT reader_group, subscriber, release, time_out, created_at, moved_at AS active_at, readers,
    open_batches, checkpoint, checkpoint_at, at_end, aligned, max_ahead, max_outstanding, on_gap,
    subject, subscriber AND EXISTS (
        SELECT FROM weir_internal.reader_group i JOIN weir_internal.reader_group_stream o USING (group_id)
        JOIN weir_internal.stream s USING (stream_id)
        WHERE i.name = reader_group AND s.retention = 'consumed' AND s.state <> 'deleted') AS holds
FROM weir.reader_groups WHERE reader_group = ANY(:names)"""
)


class Numbers(BaseModel):
    """A reader group in numbers. `holds`: whether retention of one of its streams waits for it."""

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
    holds: bool


def numbers(connection: Connection, *, names: Sequence[str]) -> list[Numbers]:
    """Return groups in numbers."""
    result = connection.execute(NUMBERS, {"names": list(names)})
    return [Numbers(**row._mapping) for row in result]


POSITIONS = text(
    """SELECT stream, segment, key_low, key_high, state, next_offset, unread_events,
    reader_id
FROM weir.positions WHERE reader_group = :group
ORDER BY stream, key_low, segment LIMIT :most"""
)


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


def positions(connection: Connection, *, group: str, most: int) -> list[Position]:
    """Return where a group is."""
    result = connection.execute(POSITIONS, {"group": group, "most": most})
    return [Position(**row._mapping) for row in result]


READERS = text(
    """SELECT reader_id, joined_at, nullif(lease_until, 'infinity') AS lease_until,
    lease_expired, segments, unread_events, batch_id, read_rate
FROM weir.readers WHERE reader_group = :group ORDER BY reader_id"""
)


class Reader(BaseModel):
    """A reader that has joined. `lease_until` is null for a streaming query, whose lease does not end."""

    reader_id: str
    joined_at: datetime
    lease_until: datetime | None
    lease_expired: bool
    segments: int
    unread_events: int
    batch_id: int | None
    read_rate: float | None


def readers(connection: Connection, *, group: str) -> list[Reader]:
    """Return who has joined."""
    result = connection.execute(READERS, {"group": group})
    return [Reader(**row._mapping) for row in result]


BATCHES = text(
    """SELECT batch_id AS number, state, reader_id, attempt, events, bytes, opened_at,
    ended_at, rejected, error, function
FROM weir.batches WHERE reader_group = :group
ORDER BY batch_id DESC LIMIT :most"""
)


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


def batches(connection: Connection, *, group: str, most: int) -> list[Batch]:
    """Return the newest batches."""
    result = connection.execute(BATCHES, {"group": group, "most": most})
    return [Batch(**row._mapping) for row in result]


WAITING = text(
    """SELECT reader_id, reason, waits_for, batch_id, stream, segment,
    oldest_unread AS since, lease_expired
FROM weir.waiting_readers WHERE reader_group = :group
UNION ALL
SELECT NULL, 'checkpoint ' || checkpoint, reader_id, batch_id, NULL, NULL, created_at, lease_expired
FROM weir.checkpoint_blockers WHERE reader_group = :group
ORDER BY 1 NULLS LAST, 3, 4 LIMIT 100"""
)


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


def waiting(connection: Connection, *, group: str) -> list[Waiting]:
    """Return who waits for whom."""
    result = connection.execute(WAITING, {"group": group})
    return [Waiting(**row._mapping) for row in result]


CHECKPOINTS = text(
    """SELECT checkpoint AS name, kind, state, created_at, expires_at, released,
    count(*) AS streams
FROM weir.checkpoints WHERE reader_group = :group
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY created_at DESC LIMIT :most"""
)


class Checkpoint(BaseModel):
    """A checkpoint of the group."""

    name: str
    kind: str
    state: str
    created_at: datetime
    expires_at: datetime | None
    released: bool
    streams: int


def checkpoints(connection: Connection, *, group: str, most: int) -> list[Checkpoint]:
    """Return the newest checkpoints."""
    result = connection.execute(CHECKPOINTS, {"group": group, "most": most})
    return [Checkpoint(**row._mapping) for row in result]


CATCH_UP = text(
    """SELECT append_rate, read_rate, catch_up
FROM weir.catch_up WHERE reader_group = :group"""
)


class CatchUp(BaseModel):
    """How fast it reads beside what is appended, by the last hour."""

    append_rate: float
    read_rate: float | None
    catch_up: timedelta | None


def catch_up(connection: Connection, *, group: str) -> CatchUp | None:
    """Return how fast a group reads."""
    result = connection.execute(CATCH_UP, {"group": group})
    row = result.one_or_none()
    return None if row is None else CatchUp(**row._mapping)


HELD = text(
    """SELECT stream, held_events, held_bytes, released_at, times_out_at, timed_out, loses_after
FROM weir.subscribers WHERE reader_group = :group AND held_events > 0 ORDER BY held_bytes DESC, stream"""
)


class Held(BaseModel):
    """What the subscriber makes a stream keep."""

    stream: str
    held_events: int
    held_bytes: int
    released_at: datetime | None
    times_out_at: datetime | None
    timed_out: bool
    loses_after: datetime | None


def held(connection: Connection, *, group: str) -> list[Held]:
    """Return what a subscriber makes streams keep."""
    result = connection.execute(HELD, {"group": group})
    return [Held(**row._mapping) for row in result]
