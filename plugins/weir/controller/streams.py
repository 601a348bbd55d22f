"""Create streams, and read what they are."""

import json
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.epochs import active_segments
from weir.controller.locks import LockedStream, read_stream
from weir.controller.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.key_space import even_split
from weir.names import StreamName, check_user_columns
from weir.segment import segment_id, segment_name
from weir.storage import Database

ON_MISSING_KEY = ("fail", "quarantine", "spread")
ON_BAD_ROWS = ("fail", "quarantine")
MOST_SEGMENTS = 10_000


def create_stream(
    database: Database,
    name: StreamName,
    *,
    routing_key: str,
    segments: int,
    on_missing_key: str = "fail",
    on_bad_rows: str = "fail",
    retain_by_consumption: bool = True,
    fields: list[dict[str, Any]] | None = None,
    request_id: str,
) -> dict[str, Any]:
    """Create a stream of `segments` equal ranges in epoch 0; `fields` is Spark's JSON struct.

    The routing key must have been checked (`weir.spark.expressions`). Returns stream id and
    segments. Raises Conflict when the stream exists.
    """
    request = Request(
        request_id,
        "create_stream",
        str(name),
        {"routing_key": routing_key, "segments": segments, "on_missing_key": on_missing_key,
         "on_bad_rows": on_bad_rows, "retain": retain_by_consumption, "fields": fields},
    )  # fmt: skip
    if not 1 <= segments <= MOST_SEGMENTS:
        raise InvalidInput(f"segments is {segments}; it must be between 1 and {MOST_SEGMENTS}.")

    def work(connection: Connection) -> dict[str, Any]:
        if (before := request.result(connection)) is not None:
            return before
        try:
            create_in(
                connection, name, routing_key, segments, on_missing_key, on_bad_rows,
                retain_by_consumption, fields, request_id,
            )  # fmt: skip
        except Conflict:
            # The same request may have been done by a twin while we waited for its insert.
            if (before := request.result(connection)) is not None:
                return before
            raise
        return request.done(connection, _describe_segments(connection, name))

    return database.transaction(work)


def create_in(
    connection: Connection,
    name: StreamName,
    routing_key: str,
    segments: int,
    on_missing_key: str,
    on_bad_rows: str,
    retain_by_consumption: bool,
    fields: list[dict[str, Any]] | None,
    request_id: str,
) -> int:
    """The same inside a transaction; returns the stream id. Raises Conflict when it exists."""
    if on_missing_key not in ON_MISSING_KEY:
        raise InvalidInput(f"on_missing_key is {on_missing_key!r}; use one of {ON_MISSING_KEY}.")
    if on_bad_rows not in ON_BAD_ROWS:
        raise InvalidInput(f"on_bad_rows is {on_bad_rows!r}; use one of {ON_BAD_ROWS}.")
    if fields is not None:
        check_user_columns([field["name"] for field in fields])
    ranges = even_split(segments)
    ids = [segment_id(number, 0) for number in range(segments)]
    row = connection.execute(
        text(
            """WITH made AS (
                INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows,
                    retain_by_consumption, next_segment_number, schema_version, last_clock, head)
                VALUES (:scope, :name, :routing_key, :on_missing_key, :on_bad_rows, :retain,
                    :segments, :version, time_clock(clock_timestamp()), CAST(:head AS jsonb))
                ON CONFLICT (scope, name) WHERE state <> 'deleted' DO NOTHING
                RETURNING stream_id, last_clock
            ), first_epoch AS (
                INSERT INTO epoch (stream_id, epoch, reference_epoch, created_at, cause, request_id)
                SELECT stream_id, 0, 0, last_clock, 'create', :request_id FROM made
            ), first_schema AS (
                INSERT INTO stream_schema (stream_id, version, fields)
                SELECT stream_id, 1, CAST(:fields AS jsonb) FROM made WHERE :version = 1
            ), first_segments AS (
                INSERT INTO segment (stream_id, segment_id, key_low, key_high)
                SELECT made.stream_id, s.* FROM made, unnest(CAST(:ids AS bigint[]),
                    CAST(:lows AS double precision[]), CAST(:highs AS double precision[])) s
            ), tails AS (
                INSERT INTO segment_tail (stream_id, segment_id)
                SELECT made.stream_id, s.id FROM made, unnest(CAST(:ids AS bigint[])) AS s (id)
            )
            SELECT stream_id FROM made"""
        ),
        {
            "scope": name.scope,
            "name": name.name,
            "routing_key": routing_key,
            "on_missing_key": on_missing_key,
            "on_bad_rows": on_bad_rows,
            "retain": retain_by_consumption,
            "segments": segments,
            "version": 0 if fields is None else 1,
            "head": json.dumps({segment_name(i): 0 for i in ids}),
            "request_id": request_id,
            "fields": json.dumps(fields or []),
            "ids": ids,
            "lows": [r.low for r in ranges],
            "highs": [r.high for r in ranges],
        },
    ).one_or_none()
    if row is None:
        raise Conflict(f"stream {name} exists already; choose another name.")
    return int(row.stream_id)


def _describe_segments(connection: Connection, name: StreamName) -> dict[str, Any]:
    stream = read_stream(connection, name)
    return {
        "stream": str(name),
        "stream_id": stream.stream_id,
        "epoch": stream.current_epoch,
        "segments": [
            [t.segment.name, t.segment.key_low, t.segment.key_high]
            for t in active_segments(connection, stream.stream_id)
        ],
    }


def schema_of(connection: Connection, stream: LockedStream) -> list[dict[str, Any]] | None:
    """The newest schema of a stream (Spark's JSON fields), or None before its first append."""
    if stream.schema_version == 0:
        return None
    fields = connection.execute(
        text("SELECT fields FROM stream_schema WHERE stream_id = :s AND version = :v"),
        {"s": stream.stream_id, "v": stream.schema_version},
    ).scalar_one()
    return list(fields)
