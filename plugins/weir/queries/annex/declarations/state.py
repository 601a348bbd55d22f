"""What exists of what is declared. Made by `make queries` from sql/annex/declarations/queries/state.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

STREAMS = text(
    """SELECT stream_name, state, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner, fields, dropped
FROM stream LEFT JOIN (SELECT stream_id, version AS schema_version, fields, dropped
    FROM stream_schema) c USING (stream_id, schema_version)
WHERE state <> 'deleted' AND (stream_name = ANY(:names) OR stream_id IN (
    SELECT r.stream_id FROM reader_group_stream r JOIN reader_group g USING (group_id)
    WHERE g.name = ANY(:groups)))"""
)


class StreamState(NamedTuple):
    """A stream: its settings, and its columns as Spark's JSON fields."""

    stream_name: str
    state: str
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
    fields: list[Field] | None
    dropped: list[str] | None


def streams(
    connection: Connection, *, names: Sequence[str], groups: Sequence[str]
) -> list[StreamState]:
    """Return streams of these names, and those that these groups read."""
    result = connection.execute(STREAMS, {"names": list(names), "groups": list(groups)})
    return [StreamState._make(row) for row in result]


GROUPS = text(
    """SELECT g.name, g.subscriber, g.on_gap, g.release, g.time_out, g.max_outstanding, g.aligned,
    g.max_ahead, g.owner, g.subject, g.consumer,
    ARRAY(SELECT s.stream_name FROM reader_group_stream r JOIN stream s USING (stream_id)
        WHERE r.group_id = g.group_id) AS streams,
    ARRAY(SELECT jsonb_build_array(s.stream_name, p.key_low, p.key_high, p.label)
        FROM reader_group_pin p JOIN stream s USING (stream_id)
        WHERE p.group_id = g.group_id) AS pins
FROM reader_group g WHERE g.name = ANY(:names)"""
)


class GroupState(NamedTuple):
    """A reader group."""

    name: str
    subscriber: bool
    on_gap: str
    release: str
    time_out: int | None
    max_outstanding: int
    aligned: bool
    max_ahead: int | None
    owner: str | None
    subject: str
    consumer: dict[str, object] | None
    streams: list[str]
    pins: list[tuple[str, float, float, str]]


def groups(connection: Connection, *, names: Sequence[str]) -> list[GroupState]:
    """Return groups, each with its streams and the stream, keys and label of each pin."""
    result = connection.execute(GROUPS, {"names": list(names)})
    return [GroupState._make(row) for row in result]
