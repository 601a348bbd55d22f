"""Update a stream: its configuration, its columns, its number of segments (semantics 5.2)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.epochs import active_segments, tick
from weir.controller.locks import LockedStream, lock_stream
from weir.controller.retention_queue import mark_retention_due
from weir.controller.scale import scale_in
from weir.controller.streams import schema_of, widen
from weir.database import columns
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.key_space import even_split
from weir.model.names import StreamName
from weir.model.schema import Field, merge, show
from weir.model.stream_configuration import Configuration

# What is done around a change of a locked stream's retention policy: it says what will be deleted.
Choosing = Callable[[Connection, LockedStream, Configuration], AbstractContextManager[list[str]]]


def update_stream(
    database: Database,
    name: StreamName,
    changes: dict[str, Any],
    *,
    fields: list[Field] | None = None,
    keep_segments: bool = False,
    choosing: Choosing | None = None,
    request_id: str,
) -> dict[str, Any]:
    """Change settings of a stream's `Configuration`, and add columns (nullable) to its schema.

    If `changes` names `min_segments`, a stream with fixed scaling gets exactly that many equal
    segments in place of all its segments; another stream, and any with `keep_segments`, gets them
    only if it has fewer. If it names another `event_time`, the stream's completeness begins anew.
    `choosing`: from `weir.retention.choose`, for a change that a person asks for.

    Returns `stream`, all settings by name, `created` (the new segments), `deletes` (lines that say
    what retention will delete, if that changes), and with `fields` also `columns` (all of the
    stream, with their types) and `added` (those that are new). Raises InvalidInput for a wrong
    setting or column, Conflict for a sealed stream, NotFound; and what `choosing` raises.
    """
    request = Request(request_id, "update_stream", str(name), {**changes, "fields": fields})

    def work(connection: Connection) -> dict[str, Any]:
        stream = lock_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        stream.must_be_active()
        configuration = stream.configuration.changed(changes)
        deletes: AbstractContextManager[list[str]] = nullcontext([])
        if choosing and configuration.retention_policy != stream.configuration.retention_policy:
            deletes = choosing(connection, stream, configuration)
        with deletes as said:
            _store(connection, stream.stream_id, configuration)
        if configuration.event_time != stream.configuration.event_time:
            _begin_event_time(connection, stream)
        mark_retention_due(connection, [stream.stream_id])
        shown = {}
        if fields is not None:
            schema = schema_of(connection, stream)
            all_fields = _with(str(name), schema, fields)
            widen(connection, stream, all_fields, schema)
            columns = [f"{field['name']} {show(field['type'])}" for field in all_fields]
            shown = {"columns": columns, "added": columns[len(schema or []) :]}
        stream = replace(stream, configuration=configuration)
        count = configuration.min_segments if "min_segments" in changes else None
        exact = configuration.scaling == "fixed" and not keep_segments
        created = _recreate(connection, stream, count, exact, request_id)
        return request.done(
            connection,
            {
                "stream": str(name), **asdict(configuration), **shown, "created": created,
                "deletes": said,
            },
        )  # fmt: skip

    return database.transaction(work)


def _with(stream: str, schema: list[Field] | None, fields: list[Field]) -> list[Field]:
    """Return the schema with more columns. `fields` need not repeat the columns that it has."""
    names = {field["name"] for field in fields}
    return merge(stream, schema, [f for f in schema or [] if f["name"] not in names] + fields)


def _store(connection: Connection, stream_id: int, configuration: Configuration) -> None:
    connection.execute(
        text(
            f"UPDATE stream SET {columns.assignments(Configuration)} WHERE stream_id = :s"  # noqa: S608 - constants
        ),
        {**columns.parameters(configuration), "s": stream_id},
    )


def _begin_event_time(connection: Connection, stream: LockedStream) -> None:
    """Delete what writers have stated, because it was about event times of another meaning. What is
    recorded of earlier commits stays as it is."""
    connection.execute(
        text(
            """WITH gone AS (DELETE FROM stream_writer WHERE stream_id = :s)
            UPDATE stream SET event_time_since = :clock, complete_until = NULL,
                newest_event_time = NULL, late_events = 0
            WHERE stream_id = :s"""
        ),
        {"s": stream.stream_id, "clock": tick(connection, stream)},
    )


def _recreate(
    connection: Connection, stream: LockedStream, count: int | None, exact: bool, request_id: str
) -> list[list[Any]]:
    """Replace all segments by `count` equal ones if there are fewer or, if `exact`, more; return
    the new ones."""
    if count is None:
        return []
    active = [tail.segment for tail in active_segments(connection, stream.stream_id)]
    if len(active) == count or (not exact and len(active) > count):
        return []
    created = scale_in(
        connection, stream, active, [s.segment_id for s in active], even_split(count),
        cause="update", reason=f"{count} segments were asked for, and there were {len(active)}",
        request_id=request_id,
    )  # fmt: skip
    return [[s.name, s.key_low, s.key_high] for s in created]
