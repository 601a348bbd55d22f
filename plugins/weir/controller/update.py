"""Update a stream: its configuration, its columns, its number of segments (semantics 5.2)."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.completeness import take_back
from weir.controller.locks import LockedStream, lock_stream
from weir.controller.retention_queue import mark_retention_due
from weir.controller.scale import scale_in
from weir.controller.streams import dropped_columns, next_schema, schema_of
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.column_changes import NOTHING, ColumnChanges, followed
from weir.model.key_space import even_split
from weir.model.names import StreamName
from weir.model.schema import Field, Kind, show
from weir.model.stream_configuration import Configuration
from weir.queries.controller import epochs
from weir.queries.controller import update as sql

# What is done around a change of a locked stream's retention policy: it says what will be deleted.
Choosing = Callable[[Connection, LockedStream, Configuration], AbstractContextManager[list[str]]]
# Says who names the columns that are to change, or raises if they must be asked first.
Allowing = Callable[[Connection, LockedStream, ColumnChanges], list[str]]


class StreamUpdated(TypedDict):
    """A stream that was changed, or would be. `settings`: all, by name. `created`: the new
    segments. `deletes`: lines that say what retention will delete, if that changes.

    With other columns also `columns` (all of the stream, with their types), `added` (those that are
    new), and `changed` and `named_by` if others changed; with `complete_until` also `taken_back`
    (lines that say what was announced)."""

    stream: str
    settings: dict[str, object]
    created: list[list[str | float]]
    deletes: list[str]
    columns: NotRequired[list[str]]
    added: NotRequired[list[str]]
    changed: NotRequired[dict[str, str]]
    named_by: NotRequired[list[str]]
    taken_back: NotRequired[list[str]]
    dry_run: NotRequired[bool]


def update_stream(
    database: Database,
    name: StreamName,
    changes: Mapping[str, object],
    *,
    fields: list[Field] | None = None,
    column_changes: ColumnChanges = NOTHING,
    allowing: Allowing | None = None,
    keep_segments: bool = False,
    choosing: Choosing | None = None,
    complete_until: str = "",
    dry_run: bool = False,
    request_id: str,
) -> StreamUpdated:
    """Change settings of a stream's `Configuration`, and its columns: add `fields` (nullable), and
    make `column_changes` (semantics 5.5).

    If `changes` names `min_segments`, a stream with fixed scaling gets exactly that many equal
    segments in place of all its segments; another stream, and any with `keep_segments`, gets them
    only if it has fewer. If it names another `event_time`, the stream's completeness begins anew.
    `choosing`: from `weir.retention.choose`, for a change that a person asks for. `allowing`: is
    asked before a column that is there changes, or one with a default is added; returns lines that
    say who names it, or raises. `complete_until`: takes back what writers have stated, as far as
    this event time, or all of it (`none`). `dry_run`: undo everything, and return what it would
    have done.

    Raises InvalidInput for a wrong setting or column, Conflict for a sealed stream, NotFound; and
    what `choosing` and `allowing` raise.
    """
    wanted = replace(column_changes, add=[*column_changes.add, *(fields or [])])
    asked: dict[str, object] = {**changes, "fields": fields}
    if complete_until:
        asked["complete_until"] = complete_until
    if column_changes:
        asked["column_changes"] = asdict(column_changes)
    request = Request[StreamUpdated](request_id, "update_stream", str(name), asked)

    def work(connection: Connection) -> StreamUpdated:
        stream = lock_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        stream.must_be_active()
        configuration = stream.configuration.changed(changes)
        again = configuration.event_time != stream.configuration.event_time
        done: StreamUpdated = {"stream": str(name), "settings": {}, "created": [], "deletes": []}
        if wanted or fields is not None:
            asks = wanted.touched or any("default" in one for one in wanted.add)
            named_by = allowing(connection, stream, wanted) if allowing and asks else []
            columns, types = _change_columns(connection, stream, wanted)
            done["columns"], done["added"] = columns, columns[len(types) - len(wanted.drop) :]
            if wanted.touched:
                done["changed"], done["named_by"] = wanted.touched, named_by
            configuration = followed(str(name), configuration, wanted, types, new_time=again)
        deletes: AbstractContextManager[list[str]] = nullcontext([])
        if choosing and configuration.retention_policy != stream.configuration.retention_policy:
            deletes = choosing(connection, stream, configuration)
        with deletes as said:
            settings = json.dumps(asdict(configuration))
            sql.store(connection, settings=settings, stream_id=stream.stream_id)
        if complete_until and (back := take_back(connection, stream, complete_until)):
            done["taken_back"] = back
        if again:
            _begin_event_time(connection, stream)
        mark_retention_due(connection, [stream.stream_id])
        stream = replace(stream, configuration=configuration)
        count = configuration.min_segments if "min_segments" in changes else None
        exact = configuration.scaling == "fixed" and not keep_segments
        done["created"] = _recreate(connection, stream, count, exact, request_id)
        done["settings"], done["deletes"] = asdict(configuration), said
        return done if dry_run else request.done(connection, done)

    def tried(connection: Connection) -> StreamUpdated:
        with connection.begin_nested() as undone:
            try:
                return work(connection)
            finally:
                undone.rollback()

    return database.transaction(tried if dry_run else work)


def _change_columns(
    connection: Connection, stream: LockedStream, wanted: ColumnChanges
) -> tuple[list[str], dict[str, Kind]]:
    """Make the next version of the schema. Return all columns, with their types, and the types of
    those that there were."""
    schema, dropped = schema_of(connection, stream), dropped_columns(connection, stream)
    fields, gone = wanted.applied(str(stream.name), schema, dropped)
    next_schema(connection, stream, fields, schema, gone)
    shown = [f"{field['name']} {show(field['type'])}" for field in fields]
    return shown, {field["name"]: field["type"] for field in schema or []}


def _begin_event_time(connection: Connection, stream: LockedStream) -> None:
    """Delete what writers have stated, because it was about event times of another meaning. What is
    recorded of earlier commits stays as it is."""
    sql.begin_event_time(
        connection,
        stream_id=stream.stream_id,
        clock=epochs.tick(connection, stream_id=stream.stream_id),
    )


def _recreate(
    connection: Connection, stream: LockedStream, count: int | None, exact: bool, request_id: str
) -> list[list[str | float]]:
    """Replace all segments by `count` equal ones if there are fewer or, if `exact`, more; return
    the new ones."""
    if count is None:
        return []
    active = epochs.active_segments(connection, stream_id=stream.stream_id)
    if len(active) == count or (not exact and len(active) > count):
        return []
    created = scale_in(
        connection, stream, active, [s.segment_id for s in active], even_split(count),
        cause="update", reason=f"{count} segments were asked for, and there were {len(active)}",
        request_id=request_id,
    )  # fmt: skip
    return [[s.name, s.key_low, s.key_high] for s in created]
