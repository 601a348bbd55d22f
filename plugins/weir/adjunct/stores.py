"""Define, update and delete adjunct stores, and look them up.

A store has a reader group of its own name, `scope/name`, which no group that people create can
have. It is how the store is a subscriber of its stream from its first transaction on: its position
is the cut of the store's newest version.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import LockedStream, lock_stream
from weir.controller.retention_queue import mark_retention_due
from weir.database import columns
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, NotFound
from weir.front_ends import called, do
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.amounts import NONE
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import StreamName, adjunct_store_name, stream_name
from weir.queries.adjunct import stores as sql
from weir.reader_groups.groups.lifecycle import create_in, delete_in
from weir.reader_groups.groups.span import find_span
from weir.reader_groups.locks import lock_group_and_streams
from weir.reader_groups.starting_points import find_cuts
from weir.warehouse.paths import adjunct_folder


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """What is asked of an adjunct store: its stream, how it is kept, and how it makes keys and
    values of events. `time_out`: as in `GroupConfiguration`."""

    stream: StreamName
    configuration: AdjunctConfiguration
    definition: AdjunctDefinition
    time_out: int | None

    def check(self) -> None:
        """Check each setting. Raises InvalidInput for a wrong one."""
        self.configuration.check()
        self.definition.check()
        GroupConfiguration(time_out=self.time_out).check()

    @property
    def by_name(self) -> dict[str, object]:
        """All settings by their names."""
        return {
            "stream": str(self.stream), "time_out": self.time_out,
            **asdict(self.configuration), **asdict(self.definition),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AdjunctStore(StoreSettings):
    """An adjunct store that exists. `group_id`: its reader group, which has the store's name.
    `generation`: the number of its configuration; each update increases it. `definition_number`:
    the number of its newest definition. `outdated`: which column that this names was renamed or
    dropped since, so that no version can be built by it."""

    store_id: int
    name: str
    stream_id: int
    group_id: int
    generation: int
    definition_number: int
    outdated: str | None = None


def read_store(connection: Connection, name: str) -> AdjunctStore:
    """Return a store. Raises NotFound."""
    found = read_stores(connection, [name])
    if name not in found:
        raise no_such_store(name)
    return found[name]


def no_such_store(name: str) -> NotFound:
    """Return the error for a store that does not exist."""
    return NotFound(
        "adjunct_store_not_found",
        f"there is no adjunct store {name}; check the name, or "
        f"{do('define_adjunct_store', adjunct_store=name, stream='STREAM')}.",
    )


def read_stores(connection: Connection, names: Sequence[str]) -> dict[str, AdjunctStore]:
    """Return those of some stores that exist, by name."""
    return {row.name: _store(row) for row in sql.stores(connection, names=list(names))}


def _store(row: sql.StoreRow) -> AdjunctStore:
    given = row._asdict()
    configuration = columns.taken(AdjunctConfiguration, given)
    definition = columns.taken(AdjunctDefinition, given)
    stream = stream_name(given.pop("stream_name"))
    return AdjunctStore(configuration=configuration, definition=definition, stream=stream, **given)


def routing_key_of(connection: Connection, stream_id: int) -> str:
    """Return the routing key of a stream, also of a deleted one."""
    return sql.routing_key(connection, stream_id=stream_id)


def lock_store(connection: Connection, store_id: int) -> None:
    """Lock a store, after the rows that semantics 4.3 names before it. Raises NotFound if it was
    deleted.
    """
    found = sql.lock(connection, store_id=store_id)
    if found is None:
        raise NotFound(
            "adjunct_store_not_found",
            f"the adjunct store with number {store_id} was deleted; name one that exists (the view "
            "weir.adjunct_stores lists them).",
        )


def lock_store_and_stream(
    connection: Connection, name: str
) -> tuple[LockedStream | None, AdjunctStore]:
    """Lock a store by name, and before it its stream and its group. Returns the stream (None if it
    was deleted) and the store. Raises NotFound."""
    store_id = read_store(connection, name).store_id
    streams, _ = lock_group_and_streams(connection, name)
    lock_store(connection, store_id)
    return (streams[0] if streams else None), read_store(connection, name)


class StoreDefined(TypedDict):
    """A store that is defined. `existed`: whether it was there already. `deletes`, `missing`: as of
    `GroupCreated`."""

    adjunct_store: str
    existed: bool
    deletes: list[str]
    missing: list[str]


class StoreUpdated(TypedDict):
    """A store that was changed. `definition`: its number. With another key also `events_since`, as
    the function of that name."""

    adjunct_store: str
    definition: int
    events_since: NotRequired[str | None]


class StoreDeleted(TypedDict):
    """A store that was deleted, or would be. Of a dry run also how many `versions` and `bytes` it
    has, and its `stream`."""

    adjunct_store: str
    versions: NotRequired[int]
    bytes: NotRequired[int]
    stream: NotRequired[str]
    dry_run: NotRequired[bool]


def define_store(
    database: Database,
    name: str,
    stream: StreamName,
    configuration: AdjunctConfiguration,
    definition: AdjunctDefinition,
    *,
    time_out: int | None = None,
    request_id: str,
) -> StoreDefined:
    """Define a store over a stream. From this transaction on it is a subscriber of the stream,
    from the head on. An identical store that exists already is left as it is.

    `time_out`: how many seconds it may be inactive before retention stops waiting for it.
    `weir.consumers.store_check` has checked the definition.

    Raises NotFound for the stream, InvalidInput for a wrong
    setting, and Conflict if another store has the name or the stream is sealed.
    """
    adjunct_store_name(name)
    asked = StoreSettings(
        stream=stream, configuration=configuration, definition=definition, time_out=time_out
    )
    asked.check()
    request = Request[StoreDefined](request_id, "define_adjunct_store", name, asked.by_name)

    def work(connection: Connection) -> StoreDefined:
        locked = lock_stream(connection, stream)
        if (before := request.result(connection)) is not None:
            return before
        exists = sql.exists(connection, name=name)
        done = StoreDefined(adjunct_store=name, existed=exists, deletes=[], missing=[])
        if exists:
            _check_identical(read_store(connection, name), locked, asked.by_name)
            return request.done(connection, done)
        locked.must_be_active()
        _check_in_stream(connection, locked, configuration)
        starts, _, missing = find_span(connection, [locked], "head", allow_truncated=False)
        group = GroupConfiguration(time_out=time_out)
        made = create_in(connection, name, [locked], starts, {}, group, missing=missing)
        sql.insert(
            connection,
            name=name,
            stream_id=locked.stream_id,
            **columns.parameters(configuration),
            **columns.parameters(definition),
        )
        done["deletes"], done["missing"] = made["deletes"], made["missing"]
        return request.done(connection, done)

    return database.transaction(work)


def bound_to_another(store: AdjunctStore, stream: StreamName) -> Conflict:
    """Return the error that a store can't be kept from a stream, as it is kept from another."""
    return Conflict(
        "adjunct_store_exists",
        f"adjunct store {store.name} is kept from stream {store.stream}, and a store has one "
        f"stream; define another store for {stream}.",
    )


def _check_in_stream(
    connection: Connection, stream: LockedStream, configuration: AdjunctConfiguration
) -> None:
    """Check that the stream has the time or the cut to which versions must be complete, and can
    have a stream of rejected rows if the store needs one. Raises InvalidInput."""
    if configuration.starting_point is not None:
        find_cuts(connection, [stream], configuration.starting_point)
    if configuration.on_error == "quarantine":
        stream_name(str(stream.name), reserved=False)


def _check_identical(store: AdjunctStore, stream: LockedStream, wanted: dict[str, object]) -> None:
    if store.stream_id != stream.stream_id:
        raise bound_to_another(store, stream.name)
    found = store.by_name
    if different := sorted(key for key in wanted if wanted[key] != found[key]):
        there = NONE if (value := found[different[0]]) is None else repr(value)
        raise Conflict(
            "adjunct_store_exists",
            f"adjunct store {store.name} already exists with another "
            f"{called(different[0])} ({there}); choose another name, or "
            f"{do('update_adjunct_store', adjunct_store=store.name)} to change it.",
        )


def update_store(
    database: Database,
    name: str,
    changes: dict[str, object],
    redefined: Mapping[str, object],
    *,
    time_out: int | None = None,
    change_time_out: bool = False,
    request_id: str,
) -> StoreUpdated:
    """Change settings of a store (`changes`) and its definition (`redefined`: fields of
    `AdjunctDefinition`).

    A changed definition is a new one, and so is an outdated one that is given again: the next build
    applies it, and versions that exist keep theirs. Another key can't be made of rows that are kept
    by key, so the next build then starts anew at the head of the stream.

    Raises NotFound and InvalidInput.
    """
    arguments: dict[str, object] = {"changes": changes, "redefined": redefined}
    arguments |= {"time_out": time_out} if change_time_out else {}
    request = Request[StoreUpdated](request_id, "update_adjunct_store", name, arguments)

    def work(connection: Connection) -> StoreUpdated:
        stream, store = lock_store_and_stream(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        configuration = store.configuration.changed(changes)
        definition = AdjunctDefinition(**{**asdict(store.definition), **redefined})
        definition.check()
        if stream is not None and changes.keys() & {"bootstrap", "on_error"}:
            _check_in_stream(connection, stream, configuration)
        group = GroupConfiguration(time_out=time_out if change_time_out else store.time_out)
        group.check()
        again = bool(redefined and store.outdated) or definition != store.definition
        number = store.definition_number + again
        sql.update(
            connection,
            store_id=store.store_id,
            group_id=store.group_id,
            number=number,
            time_out=group.time_out,
            **columns.parameters(configuration),
            **columns.parameters(definition),
        )
        result = StoreUpdated(adjunct_store=name, definition=number)
        rekeyed = (definition.key, definition.key_type) != (
            store.definition.key, store.definition.key_type,
        )  # fmt: skip
        if rekeyed and stream is not None:
            result["events_since"] = events_since(connection, stream)
        return request.done(connection, result)

    return database.transaction(work)


def events_since(connection: Connection, stream: LockedStream) -> str | None:
    """Return the time of the oldest event that the stream still has, or of its head if it has none;
    None if no event was ever truncated."""
    clock = complete_since(connection, stream)
    if clock is None:
        return None
    return sql.say_time(connection, clock=clock)


def complete_since(connection: Connection, stream: LockedStream) -> int | None:
    """Return the clock of the oldest event that a stream still has, or its last clock if it has
    none; None if no event was ever truncated."""
    return sql.complete_since(
        connection, stream_id=stream.stream_id, head=json.dumps(stream.head), last=stream.last_clock
    )


def delete_store(
    database: Database, name: str, *, dry_run: bool = False, request_id: str
) -> StoreDeleted:
    """Delete a store with its versions and its reader group; its files become garbage.

    `dry_run`: change nothing. Raises NotFound, and Conflict while an open batch is read with one of
    its versions.
    """
    request = Request[StoreDeleted](request_id, "delete_adjunct_store", name, {})

    def work(connection: Connection) -> StoreDeleted:
        stream, store = lock_store_and_stream(connection, name)
        if (pinned := sql.pinned(connection, store_id=store.store_id)) is not None:
            raise Conflict(
                "batch_open",
                f"batch {pinned.batch_id} of reader group {pinned.group_name} is read with adjunct "
                f"store {name}; wait until it is committed.",
            )
        if dry_run:
            owned = sql.owned(connection, store_id=store.store_id)
            return {
                "adjunct_store": name, "versions": owned.versions, "bytes": owned.bytes,
                "stream": owned.stream,
            }  # fmt: skip
        sql.discard(connection, store_id=store.store_id, folder=adjunct_folder(store.store_id))
        sql.delete(connection, store_id=store.store_id)
        if stream is not None:
            mark_retention_due(connection, [store.stream_id])
        delete_in(connection, store.group_id)
        return request.done(connection, {"adjunct_store": name})

    return database.transaction(lambda c: request.deleted(c, work, dry_run=dry_run))
