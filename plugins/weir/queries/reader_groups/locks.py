"""Locks of groups and their streams. Made by `make queries` from sql/queries/reader_groups/locks.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

LOCK_STREAMS_AND_GROUPS = text(
    """SELECT stream_id, scope, name, state, current_epoch, next_segment_number, schema_version, last_clock,
    head, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner FROM lock_streams_and_groups(CAST(:ids AS bigint[]), CAST(:scopes AS text[]),
    CAST(:names AS text[]), CAST(:group AS text))"""
)


class StreamColumns(NamedTuple):
    """A row of `lock_streams_and_groups`."""

    stream_id: int
    scope: str
    name: str
    state: str
    current_epoch: int
    next_segment_number: int
    schema_version: int
    last_clock: int
    head: dict[str, int | str]
    routing_key: str
    on_missing_key: str
    on_bad_rows: str
    on_new_column: str
    retention: str
    retain_min_age: int | None
    retain_max_age: int | None
    retain_min_bytes: int | None
    retain_max_bytes: int | None
    cuts_every: int | None
    publish: str
    refuse_erased: bool
    scaling: str
    min_segments: int
    target_rate: int | None
    scale_factor: int | None
    max_segments: int | None
    scale_cooldown: int
    event_time: str | None
    event_time_ahead: int
    event_time_back: int
    tags: list[str]
    owner: str | None


def lock_streams_and_groups(
    connection: Connection,
    *,
    ids: Sequence[int],
    scopes: Sequence[str],
    names: Sequence[str],
    group: str | None,
) -> list[StreamColumns]:
    """Lock streams, and the group of a name, or with none all groups that read them; return the streams in the order of their ids."""
    result = connection.execute(
        LOCK_STREAMS_AND_GROUPS,
        {"ids": list(ids), "scopes": list(scopes), "names": list(names), "group": group},
    )
    return [StreamColumns._make(row) for row in result]


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
    result = connection.execute(STREAMS_OF, {"ids": list(ids)})
    return [StreamsOf._make(row) for row in result]


LOCK_FREE_STREAMS = text(
    """SELECT stream_id FROM stream WHERE stream_id = ANY(:ids) AND state <> 'deleted'
ORDER BY stream_id FOR NO KEY UPDATE SKIP LOCKED"""
)


def lock_free_streams(connection: Connection, *, ids: Sequence[int]) -> list[int]:
    """Lock those of some streams that nobody has locked."""
    result = connection.execute(LOCK_FREE_STREAMS, {"ids": list(ids)})
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
    result = connection.execute(LOCK_FREE_GROUPS, {"ids": list(ids)})
    return [GroupRow._make(row) for row in result]
