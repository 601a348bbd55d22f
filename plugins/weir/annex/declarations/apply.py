"""Change what differs from a declaration. Everything is checked before anything is changed; then
all streams, stores, groups and consumers are changed in one transaction."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Connection

from weir.adjunct.stores import define_store, update_store
from weir.annex.declarations.columns import Columns
from weir.annex.declarations.declared import Declared, DeclaredGroup
from weir.annex.declarations.differences import Difference, differences
from weir.annex.declarations.state import Known, read_known
from weir.controller.locks import lock_streams, read_stream
from weir.controller.streams import create_stream, schema_by_id
from weir.controller.update import Allowing, update_stream
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound
from weir.front_ends import give
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
from weir.reader_groups.groups.consumers import declare_consumer
from weir.reader_groups.groups.lifecycle import create_in, create_reader_group
from weir.reader_groups.groups.span import find_span
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.choose import choosing

Planned = tuple[str, list[Field]]  # the routing key and the columns that a stream is to have


class Allowed(NamedTuple):
    """What a change may do that is refused otherwise."""

    allow_loss: bool
    allow_truncated: bool


@dataclass(frozen=True)
class Checks:
    """What rooms above check. `columns`: returns declared columns, and checks
    the routing key of a new stream; with an empty text, only that. `event_time`: checks an event
    time of a stream with these columns, if they are known.
    `definition`: checks what the adjunct store of a name makes of the events of a stream, as it is
    or as it is planned.
    `consumer`: checks the arguments of the consumer of a group, given the settings of the
    streams that it reads, and the streams that need not exist yet. `allowing`: returns what
    `update_stream` asks before columns change, given whether they may if others name them."""

    columns: Columns
    event_time: Callable[[StreamName, str, list[Field] | None], object]
    definition: Callable[[str, StreamName, AdjunctDefinition, Planned | None], object]
    consumer: Callable[
        [str, Mapping[str, Any], Mapping[str, Configuration], Collection[str]], object
    ]
    allowing: Callable[[bool], Allowing]


def compare(
    database: Database, declared: Declared, checks: Checks, allow_truncated: bool = False
) -> list[Difference]:
    """Return what `apply` would change. Changes nothing. Raises as `differences`, and InvalidInput
    naming the stream or store whose expressions are wrong, or the consumer whose function or
    outputs are."""
    return _compare(database, declared, checks, allow_truncated)


def _compare(
    database: Database, declared: Declared, checks: Checks, allow_truncated: bool
) -> list[Difference]:
    """Return what differs. Everything that can be checked before it is done is checked here."""
    known = database.snapshot(lambda c: read_known(c, declared))
    found = differences(declared, known, checks.columns)
    both = [{name: one.configuration for name, one in some.items()}
            for some in (known.streams, declared.streams)]  # fmt: skip
    streams = both[0] | both[1]
    planned: dict[str, Planned] = {}
    for one in found:
        if one.kind == "stream":
            stream = declared.streams[one.name].configuration
            whole = one.columns
            if one.column_changes:
                whole, _ = one.column_changes.applied(one.name, one.columns or None, [])
            if one.new or one.column_changes:
                planned[one.name] = (stream.routing_key, whole)
            if one.column_changes and not one.new:
                one.named_by.extend(_try_columns(database, one, checks.allowing(True)))
            if stream.event_time and "event_time" in one.changes:
                checks.event_time(stream_name(one.name), stream.event_time, whole or None)
        if one.kind == "reader group" and "start" in one.changes:
            group = declared.groups[one.name]
            one.loses.extend(_try_group(database, one.name, group, known, allow_truncated))
        if one.kind == "adjunct store" and (one.new or _redefined(one)):
            store = declared.stores[one.name]
            checks.definition(
                one.name, store.stream, store.definition, planned.get(str(store.stream))
            )
        if one.kind == "consumer":
            reader = declared.groups.get(one.name) or known.groups[one.name]
            read = {name: streams[name] for name in reader.streams if name in streams}
            try:
                checks.consumer(one.name, declared.consumers[one.name], read, declared.streams)
            except (InvalidInput, NotFound) as error:
                raise InvalidInput(
                    "declarations_invalid", f"in consumers, {one.name}: {error.sentence}"
                ) from None
    return found


def _try_columns(database: Database, one: Difference, allowing: Allowing) -> list[str]:
    """Change the columns of a stream, and undo that. Returns who names them. Raises what changing
    them would."""
    done = update_stream(
        database, stream_name(one.name), _settings(one), column_changes=one.column_changes,
        keep_segments=True, allowing=allowing, dry_run=True, request_id=str(uuid4()),
    )  # fmt: skip
    return list(done.get("named_by", []))


def _try_group(
    database: Database, name: str, group: DeclaredGroup, known: Known, allow_truncated: bool
) -> list[str]:
    """Create a new group on streams that all exist, and undo that. Returns why others would lose
    events by it. Raises what creating it would."""

    def attempt(connection: Connection) -> list[str]:
        with connection.begin_nested() as tried:  # a time is closed, which is undone too
            streams = lock_streams(connection, names=[stream_name(one) for one in group.streams])
            try:
                starts, ends, _ = find_span(
                    connection, streams, group.start, group.end,
                    allow_truncated=allow_truncated,
                )  # fmt: skip
                create_in(connection, name, streams, starts, ends, group.configuration)
            except Conflict as error:
                if error.code != "unread_would_be_lost":
                    raise
                return [error.sentence.rstrip(".")]
            finally:
                tried.rollback()
        return []

    return database.transaction(attempt) if set(group.streams) <= known.streams.keys() else []


def apply(
    database: Database,
    declared: Declared,
    *,
    checks: Checks,
    allow_loss: bool = False,
    allow_truncated: bool = False,
    allow_named: bool = False,
    request_id: str,
    say: Callable[[str], None] = print,
) -> list[Difference]:
    """Make streams, stores, groups and consumers what is declared; return what differed.

    If nothing differs, nothing is written. All changes are made, or none: of a file of which a
    part is wrong, after a kill, and if somebody else changes the same thing meanwhile.

    Raises Conflict for changes that may lose data, unless `allow_loss`, and of columns that others
    name, unless `allow_named`, and Truncated for a new group of which events were truncated, unless
    `allow_truncated`; then nothing is changed.
    """
    allowed = Allowed(allow_loss, allow_truncated)
    found = _compare(database, declared, checks, allow_truncated)
    if not allow_loss and (losing := [one for one in found if one.loses]):
        first = losing[0]
        raise Conflict(
            "would_lose_data",
            f"{len(losing)} of {len(found)} changes may lose data, the first is of {first.kind} "
            f"{first.name} ({'; '.join(first.loses)}), so nothing was changed; to see "
            f"them all, {give(dry_run=True)}; to make them, {give(allow_loss=True)}.",
        )
    if not found:
        return found

    asks = checks.allowing(allow_named)

    def change(database: Database) -> list[str]:
        database.transaction(lambda c: lock_streams(c, names=_concerned(declared, found)))
        lines = []
        for one in found:
            lines.append(str(one))
            if one.kind == "stream":
                lines += _stream(database, declared, one, asks, request_id, allowed)
            else:
                lines += _CHANGE[one.kind](database, declared, one, request_id, allowed)
        return lines

    for line in database.together(change):
        say(line)
    return found


def _concerned(declared: Declared, found: list[Difference]) -> list[StreamName]:
    """Return the streams to lock, in one order for all, before one after the other is changed:
    those that are there, and are changed or read by what is."""
    names, new = set(), {one.name for one in found if one.kind == "stream" and one.new}
    for one in found:
        if one.kind == "stream":
            names.add(one.name)
        elif one.kind == "adjunct store":
            names.add(str(declared.stores[one.name].stream))
        elif one.name in declared.groups:
            names.update(declared.groups[one.name].streams)
    return [stream_name(name) for name in sorted(names - new)]


def _stream(
    database: Database,
    declared: Declared,
    one: Difference,
    allowing: Allowing,
    request_id: str,
    allowed: Allowed,
) -> list[str]:
    wanted, name = declared.streams[one.name], stream_name(one.name)
    if one.new:
        settings = wanted.configuration.__dict__
        made = create_stream(
            database, name, segments=wanted.segments, fields=list(one.column_changes.add) or None,
            dropped=one.column_changes.reserve, request_id=request_id, **settings,
        )  # fmt: skip
        return list(made["deletes"])
    if one.column_changes:
        database.transaction(lambda c: _check_columns(c, one))
    done = update_stream(
        database, name, _settings(one), column_changes=one.column_changes, allowing=allowing,
        keep_segments=True, choosing=choosing(allowed.allow_loss), request_id=request_id,
    )  # fmt: skip
    return list(done["deletes"])


def _settings(one: Difference) -> dict[str, Any]:
    """Return what changes in the settings of a stream."""
    return {name: new for name, (_, new) in one.changes.items() if name != "columns"}


def _check_columns(connection: Connection, one: Difference) -> None:
    """Check that a locked stream has the columns with which the file was compared: two that swap
    their names must do so once."""
    stream = read_stream(connection, stream_name(one.name))
    if schema_by_id(connection, stream.stream_id) != one.columns:
        raise Conflict(
            "schema_changed",
            f"the columns of stream {one.name} changed since the file was compared with them; "
            "apply it again.",
        )


def _store(
    database: Database, declared: Declared, one: Difference, request_id: str, _allowed: Allowed
) -> list[str]:
    wanted, redefined = declared.stores[one.name], _redefined(one)
    changes = {name: new for name, (_, new) in one.changes.items() if name not in redefined}
    if one.new:
        made = define_store(
            database, one.name, wanted.stream, wanted.configuration, wanted.definition,
            time_out=wanted.time_out, request_id=request_id,
        )  # fmt: skip
        return [*made["missing"], *made["deletes"]]
    change_time_out = "time_out" in changes
    changes.pop("time_out", None)
    update_store(
        database, one.name, changes, redefined, time_out=wanted.time_out,
        change_time_out=change_time_out, request_id=request_id,
    )  # fmt: skip
    return []


def _redefined(one: Difference) -> dict[str, Any]:
    """Return what changes of the definition of a store."""
    names = [f.name for f in fields(AdjunctDefinition)]
    return {name: one.changes[name][1] for name in names if name in one.changes}


def _group(
    database: Database, declared: Declared, one: Difference, request_id: str, allowed: Allowed
) -> list[str]:
    wanted = declared.groups[one.name]
    streams = [stream_name(name) for name in wanted.streams]
    if one.new:
        made = create_reader_group(
            database, one.name, streams, start=wanted.start, end=wanted.end,
            **allowed._asdict(), request_id=request_id, **wanted.configuration.__dict__,
        )  # fmt: skip
        if wanted.pins:
            update_reader_group(database, one.name, pins=wanted.pins, request_id=request_id)
        return [*made["missing"], *made["reads"], *made["deletes"]]
    changes: dict[str, Any] = {
        name: new for name, (_, new) in one.changes.items() if name not in ("streams", "pins")
    }
    if "streams" in one.changes:
        changes |= {"streams": streams, "start": wanted.start}
    if "pins" in one.changes:
        changes["pins"] = wanted.pins
    done = update_reader_group(
        database, one.name, **changes, **allowed._asdict(), request_id=request_id
    )
    return [*done["missing"], *done["reads"], *done["deletes"]]


def _consumer(
    database: Database, declared: Declared, one: Difference, request_id: str, _allowed: Allowed
) -> list[str]:
    declare_consumer(database, one.name, declared.consumers[one.name], request_id=request_id)
    return []


_CHANGE = {"adjunct store": _store, "reader group": _group, "consumer": _consumer}
