"""Define, update and delete adjunct stores, and look them up.

A store has a reader group of its own name, `scope/name`, which no group that people create can
have. It is how the store is a subscriber of its stream from its first transaction on: its position
is the cut of the store's newest version.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.adjunct.owned import check_unpinned, owned
from weir.controller.locks import LockedStream, lock_stream
from weir.controller.retention_queue import mark_retention_due
from weir.database import columns
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, NotFound
from weir.front_ends import called, do
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import StreamName, adjunct_store_name, stream_name
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
    def by_name(self) -> dict[str, Any]:
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


# A reader group has settings of the same names.
_SETTINGS = ", ".join(f"a.{one}" for one in columns.names(AdjunctConfiguration).split(", "))
_READ = text(
    f"""SELECT a.store_id, a.name, a.stream_id, s.stream_name, a.group_id, a.generation,
        {_SETTINGS}, a.definition AS definition_number,
        {columns.names(AdjunctDefinition)}, d.outdated, g.time_out
    FROM adjunct_store a JOIN stream s USING (stream_id)
    JOIN reader_group g ON g.group_id = a.group_id
    JOIN adjunct_definition d ON d.store_id = a.store_id AND d.definition = a.definition
    WHERE a.name = ANY(CAST(:names AS text[]))"""  # noqa: S608 - constants
)


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
    rows = connection.execute(_READ, {"names": list(names)}).mappings()
    return {row["name"]: _store(dict(row)) for row in rows}


def _store(given: dict[str, Any]) -> AdjunctStore:
    configuration = AdjunctConfiguration(**columns.taken(AdjunctConfiguration, given))
    definition = AdjunctDefinition(**columns.taken(AdjunctDefinition, given))
    stream = stream_name(given.pop("stream_name"))
    return AdjunctStore(configuration=configuration, definition=definition, stream=stream, **given)


def routing_key_of(connection: Connection, stream_id: int) -> str:
    """Return the routing key of a stream, also of a deleted one."""
    return str(
        connection.execute(
            text("SELECT routing_key FROM stream WHERE stream_id = :s"), {"s": stream_id}
        ).scalar_one()
    )


def lock_store(connection: Connection, store_id: int) -> None:
    """Lock a store, after the rows that semantics 4.3 names before it. Raises NotFound if it was
    deleted.
    """
    found = connection.execute(
        text("SELECT name FROM adjunct_store WHERE store_id = :a FOR NO KEY UPDATE"),
        {"a": store_id},
    ).one_or_none()
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


def define_store(
    database: Database,
    name: str,
    stream: StreamName,
    configuration: AdjunctConfiguration,
    definition: AdjunctDefinition,
    *,
    time_out: int | None = None,
    request_id: str,
) -> dict[str, Any]:
    """Define a store over a stream. From this transaction on it is a subscriber of the stream,
    from the head on. An identical store that exists already is left as it is.

    `time_out`: how many seconds it may be inactive before retention stops waiting for it.
    `weir.consumers.store_check` has checked the definition.

    Returns `adjunct_store` (the name), `existed` (whether it was there already), `deletes` and
    `missing` (as `create_reader_group`). Raises NotFound for the stream, InvalidInput for a wrong
    setting, and Conflict if another store has the name or the stream is sealed.
    """
    adjunct_store_name(name)
    asked = StoreSettings(
        stream=stream, configuration=configuration, definition=definition, time_out=time_out
    )
    asked.check()
    request = Request(request_id, "define_adjunct_store", name, asked.by_name)

    def work(connection: Connection) -> dict[str, Any]:
        locked = lock_stream(connection, stream)
        if (before := request.result(connection)) is not None:
            return before
        exists = connection.execute(
            text("SELECT FROM adjunct_store WHERE name = :name"), {"name": name}
        ).one_or_none()
        done = {"adjunct_store": name, "existed": exists is not None, "deletes": [], "missing": []}
        if exists is not None:
            _check_identical(read_store(connection, name), locked, asked.by_name)
            return request.done(connection, done)
        locked.must_be_active()
        _check_in_stream(connection, locked, configuration)
        starts, _, missing = find_span(connection, [locked], "head", allow_truncated=False)
        group = GroupConfiguration(time_out=time_out)
        made = create_in(connection, name, [locked], starts, {}, group, missing=missing)
        connection.execute(
            _INSERT,
            {"name": name, "s": locked.stream_id}
            | columns.parameters(configuration)
            | columns.parameters(definition),
        )
        more = {one: made[one] for one in ("deletes", "missing")}
        return request.done(connection, {**done, **more})

    return database.transaction(work)


_INSERT = text(
    f"""WITH made AS (
        INSERT INTO adjunct_store (name, stream_id, group_id, {columns.names(AdjunctConfiguration)})
        SELECT :name, :s, g.group_id, {columns.values(AdjunctConfiguration)}
        FROM reader_group g WHERE g.name = :name
        RETURNING store_id
    )
    INSERT INTO adjunct_definition (store_id, definition, {columns.names(AdjunctDefinition)})
    SELECT store_id, 1, {columns.values(AdjunctDefinition)} FROM made"""  # noqa: S608 - constants
)


def bound_to_another(store: AdjunctStore, stream: StreamName) -> Conflict:
    """Return the error that a store can't be kept from a stream, as it is kept from another."""
    return Conflict(
        "adjunct_store_bound",
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


def _check_identical(store: AdjunctStore, stream: LockedStream, wanted: dict[str, Any]) -> None:
    if store.stream_id != stream.stream_id:
        raise bound_to_another(store, stream.name)
    found = store.by_name
    if different := sorted(key for key in wanted if wanted[key] != found[key]):
        raise Conflict(
            "adjunct_store_exists",
            f"adjunct store {store.name} already exists with another "
            f"{called(different[0])} ({found[different[0]]!r}); choose another name, or "
            f"{do('update_adjunct_store', adjunct_store=store.name)} to change it.",
        )


def update_store(
    database: Database,
    name: str,
    changes: dict[str, Any],
    redefined: dict[str, Any],
    *,
    time_out: int | None = None,
    change_time_out: bool = False,
    request_id: str,
) -> dict[str, Any]:
    """Change settings of a store (`changes`) and its definition (`redefined`: fields of
    `AdjunctDefinition`).

    A changed definition is a new one, and so is an outdated one that is given again: the next build
    applies it, and versions that exist keep theirs. Another key can't be made of rows that are kept
    by key, so the next build then starts anew at the head of the stream.

    Returns `adjunct_store` (the name) and `definition` (its number); with another key also
    `events_since`, as the function of that name. Raises NotFound and InvalidInput.
    """
    arguments: dict[str, Any] = {"changes": changes, "redefined": redefined}
    arguments |= {"time_out": time_out} if change_time_out else {}
    request = Request(request_id, "update_adjunct_store", name, arguments)

    def work(connection: Connection) -> dict[str, Any]:
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
        connection.execute(
            _UPDATE,
            {
                "a": store.store_id, "g": store.group_id, "number": number,
                "time_out": group.time_out, **columns.parameters(configuration),
                **columns.parameters(definition),
            },
        )  # fmt: skip
        result: dict[str, Any] = {"adjunct_store": name, "definition": number}
        rekeyed = (definition.key, definition.key_type) != (
            store.definition.key, store.definition.key_type,
        )  # fmt: skip
        if rekeyed and stream is not None:
            result["events_since"] = events_since(connection, stream)
        return request.done(connection, result)

    return database.transaction(work)


_UPDATE = text(
    f"""WITH redefined AS (
        INSERT INTO adjunct_definition (store_id, definition, {columns.names(AdjunctDefinition)})
        VALUES (:a, :number, {columns.values(AdjunctDefinition)})
        ON CONFLICT (store_id, definition) DO NOTHING
    ), timed AS (
        UPDATE reader_group SET time_out = :time_out, generation = generation + 1
        WHERE group_id = :g AND time_out IS DISTINCT FROM :time_out
    )
    UPDATE adjunct_store SET definition = :number, generation = generation + 1,
        {columns.assignments(AdjunctConfiguration)}
    WHERE store_id = :a"""  # noqa: S608 - constants
)


def events_since(connection: Connection, stream: LockedStream) -> str | None:
    """Return the time of the oldest event that the stream still has, or of its head if it has none;
    None if no event was ever truncated."""
    clock = complete_since(connection, stream)
    if clock is None:
        return None
    return str(
        connection.execute(
            text("SELECT to_json(clock_time(:clock)) #>> '{}'"), {"clock": clock}
        ).scalar_one()
    )


def complete_since(connection: Connection, stream: LockedStream) -> int | None:
    """Return the clock of the oldest event that a stream still has, or its last clock if it has
    none; None if no event was ever truncated."""
    found = connection.execute(
        text(
            """SELECT CASE WHEN z.events > 0 THEN
                coalesce(clock_after(:s, CAST(:head AS jsonb)), :last) END
            FROM size_till(:s, CAST(:head AS jsonb)) z"""
        ),
        {"s": stream.stream_id, "head": json.dumps(stream.head), "last": stream.last_clock},
    ).scalar_one()
    return None if found is None else int(found)


def delete_store(
    database: Database, name: str, *, dry_run: bool = False, request_id: str
) -> dict[str, Any]:
    """Delete a store with its versions and its reader group; its files become garbage.

    Returns `adjunct_store` (the name). `dry_run`: change nothing, and also return how many
    `versions` and `bytes` it has, and its `stream`. Raises NotFound, and Conflict while an open
    batch is read with one of its versions.
    """
    request = Request(request_id, "delete_adjunct_store", name, {})

    def work(connection: Connection) -> dict[str, Any]:
        # A deleted store has no row.
        if not dry_run and (before := request.result(connection)) is not None:
            return before
        try:
            stream, store = lock_store_and_stream(connection, name)
        except NotFound:  # another try of this request may have deleted it meanwhile
            if (before := request.result(connection)) is None:
                raise
            return before
        check_unpinned(connection, store.store_id, store.name)
        if dry_run:
            return {"adjunct_store": name, **owned(connection, store.store_id)}
        connection.execute(
            text(
                """WITH files AS (
                    INSERT INTO garbage (root, path, stream_id, reason, bytes)
                    SELECT '', :folder, NULL, 'deleted', coalesce(sum(bytes), 0)
                    FROM adjunct_file WHERE store_id = :a
                    ON CONFLICT (root, path) DO NOTHING
                )
                DELETE FROM adjunct_pin WHERE store_id = :a"""
            ),
            {"a": store.store_id, "folder": adjunct_folder(store.store_id)},
        )
        connection.execute(
            text("DELETE FROM adjunct_store WHERE store_id = :a"), {"a": store.store_id}
        )
        if stream is not None:
            mark_retention_due(connection, [store.stream_id])
        delete_in(connection, store.group_id)
        return request.done(connection, {"adjunct_store": name})

    return database.transaction(work)
