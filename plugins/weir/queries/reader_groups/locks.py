"""Locks of groups and their streams. Made by `make queries` from sql/queries/reader_groups/locks.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

MAY_ACT_FOR = text("""SELECT may_act_for(current_user, :owner)""")


def may_act_for(connection: Connection, *, owner: str) -> bool:
    """Return whether the login may act for a role."""
    result = connection.execute(MAY_ACT_FOR, {"owner": owner})
    value: bool = result.scalar_one()
    return value


STREAMS_OF = text(
    """SELECT g.group_id,
    coalesce(array_agg(gs.stream_id) FILTER (WHERE s.state <> 'deleted'), '{}') AS alive,
    coalesce(array_agg(gs.stream_id) FILTER (WHERE s.state IS NOT NULL), '{}') AS streams
FROM reader_group g
LEFT JOIN (reader_group_stream gs JOIN stream s USING (stream_id)) USING (group_id)
WHERE g.group_id = ANY(:ids) GROUP BY g.group_id"""
)


class StreamsOf(NamedTuple):
    """A row of `streams_of`."""

    group_id: int
    alive: list[int]
    streams: list[int]


def streams_of(connection: Connection, *, ids: Sequence[int]) -> list[StreamsOf]:
    """Return the streams of groups: those that are still there, and all."""
    result = connection.execute(STREAMS_OF, {"ids": ids})
    return [StreamsOf._make(row) for row in result]


LOCK_FREE_STREAMS = text(
    """SELECT stream_id FROM stream WHERE stream_id = ANY(:ids) AND state <> 'deleted'
ORDER BY stream_id FOR NO KEY UPDATE SKIP LOCKED"""
)


def lock_free_streams(connection: Connection, *, ids: Sequence[int]) -> list[int]:
    """Lock those of some streams that nobody has locked."""
    result = connection.execute(LOCK_FREE_STREAMS, {"ids": ids})
    return [row[0] for row in result]


READ_GROUP = text(
    """SELECT group_id, name, generation, next_token, next_batch, subscriber, on_gap, release, time_out,
    max_outstanding, aligned, max_ahead, owner, subject
FROM reader_group WHERE name = :name"""
)


class GroupRow(NamedTuple):
    """A row of `read_group`."""

    group_id: int
    name: str
    generation: int
    next_token: int
    next_batch: int
    subscriber: bool
    on_gap: str
    release: str
    time_out: int | None
    max_outstanding: int
    aligned: bool
    max_ahead: int | None
    owner: str | None
    subject: str


def read_group(connection: Connection, *, name: str) -> GroupRow | None:
    """Return a group."""
    result = connection.execute(READ_GROUP, {"name": name})
    row = result.one_or_none()
    return None if row is None else GroupRow._make(row)


LOCK_GROUP = text(
    """SELECT group_id, name, generation, next_token, next_batch, subscriber, on_gap, release, time_out,
    max_outstanding, aligned, max_ahead, owner, subject
FROM reader_group WHERE name = :name FOR NO KEY UPDATE"""
)


def lock_group(connection: Connection, *, name: str) -> GroupRow | None:
    """Lock a group."""
    result = connection.execute(LOCK_GROUP, {"name": name})
    row = result.one_or_none()
    return None if row is None else GroupRow._make(row)


LOCK_FREE_GROUPS = text(
    """SELECT group_id, name, generation, next_token, next_batch, subscriber, on_gap, release, time_out,
    max_outstanding, aligned, max_ahead, owner, subject
FROM reader_group WHERE group_id = ANY(:ids) ORDER BY group_id FOR NO KEY UPDATE SKIP LOCKED"""
)


def lock_free_groups(connection: Connection, *, ids: Sequence[int]) -> list[GroupRow]:
    """Lock those of some groups that nobody has locked."""
    result = connection.execute(LOCK_FREE_GROUPS, {"ids": ids})
    return [GroupRow._make(row) for row in result]
