"""Streams and their schema. Made by `make queries` from sql/queries/controller/streams.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.schema import Field

CREATE = text(
    """WITH made AS (
    INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner, next_segment_number, schema_version, last_clock,
                        head, event_time_since)
    SELECT :scope, :name, routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner, l.first + :segments, :version, now_clock(),
           (SELECT jsonb_object_agg(segment_name(l.first + i), 0)
            FROM generate_series(0, :segments - 1) i),
           CASE WHEN event_time IS NOT NULL THEN 0 END
    FROM (SELECT coalesce((SELECT p.next_segment_number FROM stream p
                           WHERE p.scope = :scope AND p.name = :name
                           ORDER BY p.stream_id DESC LIMIT 1), 0) AS first) l
    CROSS JOIN (SELECT routing_key, on_missing_key, on_bad_rows, on_new_column, retention, retain_min_age,
    retain_max_age, retain_min_bytes, retain_max_bytes, cuts_every, publish,
    refuse_erased, scaling, min_segments, target_rate, scale_factor, max_segments,
    scale_cooldown, event_time, event_time_ahead, event_time_back, tags, owner FROM
        jsonb_populate_record(CAST(NULL AS stream), CAST(:settings AS jsonb))) c
    ON CONFLICT (scope, name) WHERE state <> 'deleted' DO NOTHING
    RETURNING stream_id, last_clock, next_segment_number - :segments AS first
), first_epoch AS (
    INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, reason,
                       request_id)
    SELECT stream_id, :scope || '/' || :name, 0, 0, last_clock, 'create',
           'the stream was created', :request_id
    FROM made
), first_schema AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    SELECT stream_id, 1, CAST(:fields AS jsonb), CAST(:dropped AS text[])
    FROM made WHERE :version = 1
), first_segments AS (
    INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
    SELECT made.stream_id, :scope || '/' || :name, made.first + s.number - 1, s.low, s.high
    FROM made, unnest(CAST(:lows AS double precision[]),
        CAST(:highs AS double precision[])) WITH ORDINALITY AS s (low, high, number)
    RETURNING stream_id, segment_id
), tails AS (
    INSERT INTO segment_tail (stream_id, segment_id)
    SELECT stream_id, segment_id FROM first_segments
), moved AS (
    INSERT INTO capture_queue (stream_id) SELECT stream_id FROM made
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM made
)
SELECT stream_id FROM made"""
)


def create(
    connection: Connection,
    *,
    scope: str,
    name: str,
    segments: int,
    version: int,
    settings: str,
    request_id: str,
    fields: str,
    dropped: Sequence[str],
    lows: Sequence[float],
    highs: Sequence[float],
) -> int | None:
    """Create a stream with its first epoch, segments and columns (with version 1), unless one of its name exists. Return its id."""
    result = connection.execute(
        CREATE,
        {
            "scope": scope,
            "name": name,
            "segments": segments,
            "version": version,
            "settings": settings,
            "request_id": request_id,
            "fields": fields,
            "dropped": list(dropped),
            "lows": list(lows),
            "highs": list(highs),
        },
    )
    value: int | None = result.scalar_one_or_none()
    return value


NEXT_VERSION = text(
    """WITH made AS (
    INSERT INTO stream_schema (stream_id, version, fields, dropped)
    VALUES (:stream_id, :version, CAST(:fields AS jsonb), CAST(:dropped AS text[]))
)
UPDATE stream SET schema_version = :version WHERE stream_id = :stream_id"""
)


def next_version(
    connection: Connection, *, stream_id: int, version: int, fields: str, dropped: Sequence[str]
) -> None:
    """Make `fields` a version of the schema, and the newest one."""
    result = connection.execute(
        NEXT_VERSION,
        {"stream_id": stream_id, "version": version, "fields": fields, "dropped": list(dropped)},
    )
    result.close()


DROPPED = text(
    """SELECT dropped FROM stream_schema WHERE stream_id = :stream_id AND version = :version"""
)


def dropped(connection: Connection, *, stream_id: int, version: int) -> list[str] | None:
    """Return the names in files of the columns that a version of the schema has no more."""
    result = connection.execute(DROPPED, {"stream_id": stream_id, "version": version})
    value: list[str] | None = result.scalar_one_or_none()
    return value


NEWEST_FIELDS = text(
    """SELECT fields FROM stream_schema WHERE stream_id = :stream_id ORDER BY version DESC LIMIT 1"""
)


def newest_fields(connection: Connection, *, stream_id: int) -> list[Field] | None:
    """Return the columns of the newest version."""
    result = connection.execute(NEWEST_FIELDS, {"stream_id": stream_id})
    value: list[Field] | None = result.scalar_one_or_none()
    return value


VERSIONS = text(
    """SELECT time_clock(created_at) AS since, fields FROM stream_schema
WHERE stream_id = :stream_id ORDER BY version"""
)


class Versions(NamedTuple):
    """A row of `versions`."""

    since: int
    fields: list[Field]


def versions(connection: Connection, *, stream_id: int) -> list[Versions]:
    """Return all versions, oldest first, each with the clock from which on it was the newest."""
    result = connection.execute(VERSIONS, {"stream_id": stream_id})
    return [Versions._make(row) for row in result]
