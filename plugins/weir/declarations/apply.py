"""Change what differs from a declaration: each stream, store, group and consumer in a transaction
of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from weir.adjunct.stores import define_store, update_store
from weir.controller.streams import create_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.declarations.declared import Declared
from weir.declarations.differences import Columns, Difference, differences
from weir.declarations.state import read_known
from weir.errors import Conflict, InvalidInput, NotFound
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.reader_groups.consumers import declare_consumer
from weir.reader_groups.groups import create_reader_group
from weir.reader_groups.update import update_reader_group


@dataclass(frozen=True)
class Checks:
    """What only Spark can check. `key`: checks a routing key, and returns its columns.
    `event_time`: checks an event time of a stream with these columns, if they are known.
    `definition`: checks what the adjunct store of a name makes of the events of a stream.
    `consumer`: checks the arguments of the consumer of a group, given the routing keys of the
    streams that it reads, and the streams that need not exist yet."""

    key: Callable[[str], Sequence[str]]
    columns: Columns
    event_time: Callable[[StreamName, str, list[Field] | None], object]
    definition: Callable[[str, StreamName, AdjunctDefinition], object]
    consumer: Callable[[str, Mapping[str, Any], Mapping[str, str], Collection[str]], object]


def compare(database: Database, declared: Declared, checks: Checks) -> list[Difference]:
    """Return what `apply` would change. Changes nothing. Raises as `differences`, and InvalidInput
    naming the store whose definition is wrong, or the consumer whose function or outputs are."""
    known = database.snapshot(lambda c: read_known(c, declared))
    found = differences(declared, known, checks.columns)
    both = [{name: one.configuration.routing_key for name, one in some.items()}
            for some in (known.streams, declared.streams)]  # fmt: skip
    keys = both[0] | both[1]
    with_columns = {one.name for one in found if one.kind == "stream" and "columns" in one.changes}
    ready = known.streams.keys() - with_columns
    for one in found:
        if one.kind == "adjunct store" and (one.new or _redefined(one)):
            store = declared.stores[one.name]
            if str(store.stream) in ready:  # else it is checked once the stream has its columns
                checks.definition(one.name, store.stream, store.definition)
        if one.kind == "consumer":
            group = declared.groups.get(one.name) or known.groups[one.name]
            read = {name: keys[name] for name in group.streams if name in keys}
            try:
                checks.consumer(one.name, declared.consumers[one.name], read, declared.streams)
            except (InvalidInput, NotFound) as error:
                raise InvalidInput(
                    "declarations_invalid", f"in consumers, {one.name}: {error.sentence}"
                ) from None
    return found


def apply(
    database: Database,
    declared: Declared,
    *,
    checks: Checks,
    allow_loss: bool = False,
    request_id: str,
    say: Callable[[str], None] = print,
) -> list[Difference]:
    """Make streams, stores, groups and consumers what is declared; return what differed.

    If nothing differs, nothing is written. After a failure, apply again: what was done does not
    differ any more.

    Raises Conflict for changes that may lose data, unless `allow_loss`; then nothing is changed.
    """
    found = compare(database, declared, checks)
    if not allow_loss and (losing := [one for one in found if one.loses]):
        first = losing[0]
        raise Conflict(
            "would_lose_data",
            f"{len(losing)} of {len(found)} changes may lose data, the first is of {first.kind} "
            f"{first.name} ({'; '.join(first.loses)}), so nothing was changed; check the "
            "differences with a dry run, then allow loss.",
        )
    for one in found:
        say(str(one))
        _CHANGE[one.kind](database, declared, one, checks, request_id)
    return found


def _stream(
    database: Database, declared: Declared, one: Difference, checks: Checks, request_id: str
) -> None:
    wanted, name = declared.streams[one.name], stream_name(one.name)
    used = checks.key(wanted.configuration.routing_key) if one.new else []
    fields = checks.columns(wanted.columns, used) if "columns" in one.changes else None
    if (event_time := wanted.configuration.event_time) and "event_time" in one.changes:
        checks.event_time(name, event_time, [*one.columns, *(fields or [])] or None)
    if one.new:
        settings = wanted.configuration.__dict__
        create_stream(
            database, name, segments=wanted.segments, fields=fields, request_id=request_id,
            **settings,
        )  # fmt: skip
        return
    changes = {name: new for name, (_, new) in one.changes.items() if name != "columns"}
    update_stream(database, name, changes, fields=fields, keep_segments=True, request_id=request_id)


def _store(
    database: Database, declared: Declared, one: Difference, checks: Checks, request_id: str
) -> None:
    wanted, redefined = declared.stores[one.name], _redefined(one)
    changes = {name: new for name, (_, new) in one.changes.items() if name not in redefined}
    if one.new or redefined:  # also if `compare` has done so: the stream may have changed since
        checks.definition(one.name, wanted.stream, wanted.definition)
    if one.new:
        define_store(
            database, one.name, wanted.stream, wanted.configuration, wanted.definition,
            time_out=wanted.time_out, request_id=request_id,
        )  # fmt: skip
        return
    change_time_out = "time_out" in changes
    changes.pop("time_out", None)
    update_store(
        database, one.name, changes, redefined, time_out=wanted.time_out,
        change_time_out=change_time_out, request_id=request_id,
    )  # fmt: skip


def _redefined(one: Difference) -> dict[str, Any]:
    """Return what changes of the definition of a store."""
    names = [f.name for f in fields(AdjunctDefinition)]
    return {name: one.changes[name][1] for name in names if name in one.changes}


def _group(
    database: Database, declared: Declared, one: Difference, _checks: Checks, request_id: str
) -> None:
    wanted = declared.groups[one.name]
    streams = [stream_name(name) for name in wanted.streams]
    if one.new:
        create_reader_group(
            database, one.name, streams, start=wanted.start, end=wanted.end,
            request_id=request_id, **wanted.configuration.__dict__,
        )  # fmt: skip
        if wanted.pins:
            update_reader_group(database, one.name, pins=wanted.pins, request_id=request_id)
        return
    changes: dict[str, Any] = {
        name: new for name, (_, new) in one.changes.items() if name not in ("streams", "pins")
    }
    if "streams" in one.changes:
        changes |= {"streams": streams, "start": wanted.start}
    if "pins" in one.changes:
        changes["pins"] = wanted.pins
    update_reader_group(database, one.name, **changes, request_id=request_id)


def _consumer(
    database: Database, declared: Declared, one: Difference, _checks: Checks, request_id: str
) -> None:
    declare_consumer(database, one.name, declared.consumers[one.name], request_id=request_id)


_CHANGE = {
    "stream": _stream, "adjunct store": _store, "reader group": _group, "consumer": _consumer,
}  # fmt: skip
