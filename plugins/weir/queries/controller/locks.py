"""Rows of streams, locked or not. Made by `make queries` from sql/queries/controller/locks.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

LOCK_STREAMS = text(
    """SELECT stream_id, scope, name, state, current_epoch, next_segment_number, schema_version, last_clock,
    head, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner FROM lock_streams(CAST(:ids AS bigint[]), CAST(:scopes AS text[]),
    CAST(:names AS text[]))"""
)


class StreamColumns(NamedTuple):
    """A row of `lock_streams`."""

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


def lock_streams(
    connection: Connection, *, ids: Sequence[int], scopes: Sequence[str], names: Sequence[str]
) -> list[StreamColumns]:
    """Lock streams, given by ids or by names, and return them in the order of their ids."""
    result = connection.execute(
        LOCK_STREAMS, {"ids": list(ids), "scopes": list(scopes), "names": list(names)}
    )
    return [StreamColumns._make(row) for row in result]


READ_STREAM = text(
    """SELECT stream_id, scope, name, state, current_epoch, next_segment_number, schema_version, last_clock,
    head, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner FROM stream WHERE state <> 'deleted' AND scope = :scope AND name = :name"""
)


def read_stream(connection: Connection, *, scope: str, name: str) -> StreamColumns | None:
    """Return a stream, for reading only."""
    result = connection.execute(READ_STREAM, {"scope": scope, "name": name})
    row = result.one_or_none()
    return None if row is None else StreamColumns._make(row)
