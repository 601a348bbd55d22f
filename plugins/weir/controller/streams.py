"""Create streams, and read their schema (semantics 5.1).

A scope is the first half of a name and has no row, so nobody can forget to create one or leave one
over.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import LockedStream, read_stream
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.front_ends import called
from weir.model.column_changes import columns_at
from weir.model.key_space import even_split
from weir.model.names import StreamName
from weir.model.scaling_policy import check_count
from weir.model.schema import Field, plain
from weir.model.stream_configuration import Configuration
from weir.queries.controller import epochs
from weir.queries.controller import streams as sql


class StreamCreated(TypedDict):
    """A stream that was created. `segments`: name, low and high key of each. `deletes`: a line that
    says what retention will delete."""

    stream: str
    stream_id: int
    epoch: int
    segments: list[list[str | float]]
    deletes: list[str]


def create_stream(
    database: Database,
    name: StreamName,
    *,
    segments: int,
    fields: list[Field] | None = None,
    dropped: Sequence[str] = (),
    request_id: str,
    **configuration: Any,
) -> StreamCreated:
    """Create a stream of `segments` equal ranges in epoch 0.

    `fields`: the schema as Spark's JSON fields; None: that of the first append. `dropped`: names
    that no column gets in files, as if one had been dropped. `configuration`: the settings of
    `Configuration`; `weir.operations.expressions` must have checked the routing key. A name that
    was used before continues with the segment numbers of the deleted stream (semantics 1.2).

    Raises Conflict if the stream exists, InvalidInput for wrong settings.
    """
    wanted = Configuration(**configuration)
    request = Request[StreamCreated](
        request_id, "create_stream", str(name),
        {**asdict(wanted), "segments": segments, "fields": fields}
        | ({"dropped": list(dropped)} if dropped else {}),
    )  # fmt: skip

    def work(connection: Connection) -> StreamCreated:
        if (before := request.result(connection)) is not None:
            return before
        try:
            create_in(connection, name, wanted, segments, fields, request_id, dropped)
        except Conflict:
            # Another process may have done the same request while this one waited for its insert.
            if (before := request.result(connection)) is not None:
                return before
            raise
        deletes = [wanted.retention_policy.said_of(str(name))]
        stream = read_stream(connection, name)
        made = epochs.active_segments(connection, stream_id=stream.stream_id)
        return request.done(connection, {
            "stream": str(name), "stream_id": stream.stream_id, "epoch": stream.current_epoch,
            "segments": [[one.name, one.key_low, one.key_high] for one in made],
            "deletes": deletes,
        })  # fmt: skip

    return database.transaction(work)


def create_in(
    connection: Connection,
    name: StreamName,
    configuration: Configuration,
    segments: int,
    fields: list[Field] | None,
    request_id: str,
    dropped: Sequence[str] = (),
) -> int:
    """Create a stream within a transaction and return its id. Raises like `create_stream`."""
    configuration.check()
    check_count("segments", segments)
    if segments < configuration.min_segments:
        raise InvalidInput(
            "arguments_conflict",
            f"{called('segments')} is {segments}, which is less than {called('min_segments')} "
            f"({configuration.min_segments}); raise the first or lower the second.",
        )
    most = configuration.max_segments
    if most is not None and segments > most:
        raise InvalidInput(
            "arguments_conflict",
            f"{called('segments')} is {segments}, which is more than {called('max_segments')} "
            f"({most}); lower the first or raise the second.",
        )
    if fields is not None:
        fields = plain(fields)
    configuration = configuration.created(declared=fields is not None)
    ranges = even_split(segments)
    stream_id = sql.create(
        connection,
        scope=name.scope,
        name=name.name,
        settings=json.dumps(asdict(configuration)),
        segments=segments,
        version=0 if fields is None else 1,
        request_id=request_id,
        fields=json.dumps(fields or []),
        dropped=list(dropped),
        lows=[r.low for r in ranges],
        highs=[r.high for r in ranges],
    )
    if stream_id is None:
        raise Conflict("stream_exists", f"stream {name} already exists; choose another name.")
    return stream_id


def next_schema(
    connection: Connection,
    stream: LockedStream,
    fields: list[Field],
    schema: list[Field] | None,
    dropped: Sequence[str],
) -> LockedStream:
    """Make `fields` the next version of the schema, unless it equals `schema`, the present one.

    `dropped`: the names in files of columns that it no longer has. Returns the stream with its
    present schema version.
    """
    if fields == schema:
        return stream
    version = stream.schema_version + 1
    sql.next_version(
        connection, stream_id=stream.stream_id, version=version, fields=json.dumps(fields),
        dropped=list(dropped),
    )  # fmt: skip
    return replace(stream, schema_version=version)


def dropped_columns(connection: Connection, stream: LockedStream) -> list[str]:
    """Return the names in files of the columns that a locked stream had and has no more."""
    version = stream.schema_version
    return sql.dropped(connection, stream_id=stream.stream_id, version=version) or []


def schema_of(connection: Connection, stream: LockedStream) -> list[Field] | None:
    """Return the newest schema of a locked stream; None before its first append."""
    return schema_by_id(connection, stream.stream_id) if stream.schema_version else None


def schema_by_id(connection: Connection, stream_id: int) -> list[Field]:
    """Return the newest schema of a stream as Spark's JSON fields; no columns before its first
    append."""
    return sql.newest_fields(connection, stream_id=stream_id) or []


def schema_versions(connection: Connection, stream_id: int) -> list[tuple[int, list[Field]]]:
    """Return all versions of a stream's schema, oldest first, each with the clock from which on it
    was the newest."""
    return [*sql.versions(connection, stream_id=stream_id)]


def schema_at(connection: Connection, stream_id: int, version: int) -> list[Field]:
    """Return the columns of an older version of a stream's schema, each with the widest type that
    it got (semantics 5.5). Raises InvalidInput for a version that there is not."""
    versions = [fields for _, fields in schema_versions(connection, stream_id)]
    if isinstance(version, bool) or version not in range(1, len(versions) + 1):
        raise InvalidInput(
            "argument_invalid",
            f"the schema has the versions 1 to {len(versions)}, but version {version!r} is asked "
            "for; choose one of these (the view weir.stream_columns lists them).",
        )
    return columns_at(versions, version)
