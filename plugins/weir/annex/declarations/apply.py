"""Change what differs from a declaration. Everything is checked before anything is changed; then
all streams, stores, groups and consumers are changed in one transaction."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import cast
from uuid import uuid4

from sqlalchemy import Connection

from weir.annex.declarations.declared import Declared
from weir.annex.declarations.differences import Difference, differences
from weir.annex.declarations.state import Known, read_known
from weir.controller.locks import lock_streams, read_stream
from weir.controller.streams import schema_by_id
from weir.controller.update import StreamUpdated
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound
from weir.front_ends import give
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import StreamName, stream_name
from weir.operations.asked import Allowed, AskedGroup, AskedStream, Planned, lines
from weir.operations.consumers import AskedConsumer
from weir.reader_groups.groups.lifecycle import create_in
from weir.reader_groups.groups.span import find_span
from weir.settings import Settings

_DEFINITION = {one.name for one in fields(AdjunctDefinition)}


def compare(
    database: Database, settings: Settings, declared: Declared, allow_truncated: bool = False
) -> list[Difference]:
    """Return what `apply` would change, and change nothing. Everything that can be checked before
    it is done is checked here.

    Raises as `differences`, and InvalidInput naming the stream or store whose expressions are
    wrong, or the consumer whose function or outputs are.
    """
    known = database.snapshot(lambda c: read_known(c, declared))
    found = differences(declared, known)
    planned: dict[str, Planned] = {}
    for one in found:
        asked = one.asked
        if isinstance(asked, AskedStream):
            asked.check_with(one.columns)
            if one.new or asked.columns:
                key = declared.streams[one.name].configuration.routing_key
                planned[one.name] = (key, asked.columns_after(one.columns) or [])
            if asked.columns and not one.new:
                one.named_by.extend(_try_columns(database, settings, asked))
        elif isinstance(asked, AskedGroup) and one.new:
            one.loses.extend(_try_group(database, asked, known, allow_truncated))
        elif isinstance(asked, AskedConsumer):
            try:
                asked.check(database, settings)
            except (InvalidInput, NotFound) as error:
                raise InvalidInput(
                    "declarations_invalid", f"in consumers, {one.name}: {error.sentence}"
                ) from None
        elif one.kind == "adjunct store" and (one.new or _DEFINITION & one.changes.keys()):
            store = declared.stores[one.name]
            store.check(database, settings, planned.get(str(store.stream)))
    return found


def _try_columns(database: Database, settings: Settings, asked: AskedStream) -> list[str]:
    """Change the columns of a stream, and undo that. Returns who names them. Raises what changing
    them would."""
    done = replace(asked, dry_run=True).bring(
        database, settings, Allowed(True, True, True), request_id=str(uuid4())
    )
    return cast(StreamUpdated, done).get("named_by", [])


def _try_group(
    database: Database, asked: AskedGroup, known: Known, allow_truncated: bool
) -> list[str]:
    """Create a new group on streams that all exist, and undo that. Returns why others would lose
    events by it. Raises what creating it would."""

    def attempt(connection: Connection) -> list[str]:
        with connection.begin_nested() as tried:  # a time is closed, which is undone too
            streams = lock_streams(connection, names=asked.streams or ())
            try:
                starts, ends, _ = find_span(
                    connection, streams, asked.start, asked.end, allow_truncated=allow_truncated
                )
                configuration = GroupConfiguration().changed(asked.settings)
                create_in(connection, asked.name, streams, starts, ends, configuration)
            except Conflict as error:
                if error.code != "would_lose_data":
                    raise
                return [error.sentence.rstrip(".")]
            finally:
                tried.rollback()
        return []

    return database.transaction(attempt) if set(asked.reads) <= known.streams.keys() else []


def apply(
    database: Database,
    settings: Settings,
    declared: Declared,
    allowed: Allowed,
    *,
    request_id: str,
    say: Callable[[str], object] = print,
) -> list[Difference]:
    """Make streams, stores, groups and consumers what is declared; return what differed.

    If nothing differs, nothing is written. All changes are made, or none: of a file of which a
    part is wrong, after a kill, and if somebody else changes the same thing meanwhile.

    Raises Conflict for changes that may lose data, and of columns that others name, and Truncated
    for a new group of which events were truncated, unless that is allowed; then nothing is changed.
    """
    found = compare(database, settings, declared, allowed.truncated)
    if not allowed.loss and (losing := [one for one in found if one.loses]):
        first = losing[0]
        raise Conflict(
            "would_lose_data",
            f"{len(losing)} of {len(found)} changes may lose data, the first is of {first.kind} "
            f"{first.name} ({'; '.join(first.loses)}), so nothing was changed; to see "
            f"them all, {give(dry_run=True)}; to make them, {give(allow_loss=True)}.",
        )
    if not found:
        return found

    def change(database: Database) -> list[str]:
        database.transaction(lambda c: lock_streams(c, names=_concerned(declared, found)))
        said = []
        for one in found:
            database.transaction(partial(_check_columns, one=one))
            done = one.asked.bring(database, settings, allowed, request_id=request_id)
            said += [str(one), *lines(done)]
        return said

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
            names.update(declared.groups[one.name].reads)
    return [stream_name(name) for name in sorted(names - new)]


def _check_columns(connection: Connection, one: Difference) -> None:
    """Check that a locked stream has the columns with which the file was compared: two that swap
    their names must do so once."""
    if one.new or not isinstance(one.asked, AskedStream) or not one.asked.columns:
        return
    stream = read_stream(connection, stream_name(one.name))
    if schema_by_id(connection, stream.stream_id) != one.columns:
        raise Conflict(
            "schema_changed",
            f"the columns of stream {one.name} changed since the file was compared with them; "
            "apply it again.",
        )
