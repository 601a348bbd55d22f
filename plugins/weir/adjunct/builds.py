"""Decide who builds which version of a store, and from what.

A version is recorded with the events that it adds before anything is read: from the cut of its base
to its own cut. Whoever builds it after another builder has died builds the same version, in a
folder of its own, and the one before can't publish any more.

What ended without a word is built last, with rests in between, so that a store that kills the
process does not keep the others from theirs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.adjunct.stores import AdjunctStore, complete_since, lock_store_and_stream
from weir.adjunct.versions import AdjunctVersion, find_version, read_version
from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.missing import missing_after
from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.errors import Conflict, NotFound, Truncated
from weir.front_ends import do
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.stream_cut import StreamCut, at_or_before
from weir.queries.adjunct import builds as sql
from weir.reader_groups.positions import place_at
from weir.warehouse.paths import adjunct_attempt_folder

REBUILT, CONVERTED, EXTENDED = "rebuilt", "converted", "extended"


class Built(TypedDict):
    """A version of a store that was built, or the `error` with which that failed."""

    adjunct_store: str
    version: NotRequired[int]
    keys: NotRequired[int]
    bytes: NotRequired[int]
    files: NotRequired[int]
    error: NotRequired[str]


@dataclass(frozen=True)
class Build:
    """An attempt at a version. It reads the events of the stream from `from_cut` to `cut`.

    `kind`: `rebuilt` without a base; `converted`: the rows of `base`, their values computed again
    by the new definition; or `extended`, `base` as it is.
    """

    store: AdjunctStore
    version: int
    attempt: int
    kind: str
    base: AdjunctVersion | None
    from_cut: Cut
    cut: Cut
    clock: int
    code: str | None

    @property
    def folder(self) -> str:
        """Its folder below the warehouse."""
        return adjunct_attempt_folder(self.store.store_id, self.version, self.attempt)


@dataclass(frozen=True)
class Running:
    """Another builder is building a version of the store."""

    version: int
    builder: str
    leased: float = field(default=0.0, compare=False)  # seconds, unless the builder renews it


def begin_build(
    database: Database,
    name: str,
    *,
    builder: str,
    lease: float,
    code: str | None = None,
    cut: Cut | None = None,
    clock: int | None = None,
) -> Build | Running | AdjunctVersion:
    """Begin to build a version of a store that is complete to a cut of its stream.

    `cut`: None for the tail. `clock`: the clock of the cut, if the caller has closed one. `code`: a
    hash of the files of the store's functions; other code counts as another definition. Returns the
    version if there is one already: also the newest one, whose cut moves forward, if no events lie
    between. If the `lease` (seconds) of a build has expired, begins the next attempt at that
    version. Raises NotFound if the store or its stream does not exist, Conflict if its definition
    is outdated by a change of columns, and Truncated if events were truncated before the store read
    them, unless it is then rebuilt.
    """

    def work(connection: Connection) -> Build | Running | AdjunctVersion:
        stream, store = lock_store_and_stream(connection, name)
        if stream is None:
            raise NotFound(
                "stream_deleted",
                f"stream {store.stream} of adjunct store {name} was deleted, so no version can be "
                "built any more; read those that exist, or define a store of another stream.",
            )
        newest = find_version(connection, store.store_id)
        target, at = _target(connection, stream, cut, clock)
        current = newest is not None and _is_current(store, newest, code)
        if newest is not None:
            (reached,) = load_cuts(connection, stream.stream_id, newest.cut)
            before = at_or_before(target, reached)
            if before and current:
                return find_version(connection, store.store_id, target.to_json()) or newest
            if before:  # later versions have later cuts
                target, at = reached, newest.clock
        if store.outdated:
            raise Conflict(
                "adjunct_definition_invalid",
                f"adjunct store {name} is not built, because {store.outdated}; "
                f"{do('update_adjunct_store', adjunct_store=name, value='VALUE')}, with the names "
                "that the columns have now.",
            )
        running = _running(connection, store, builder, code)
        if isinstance(running, Running):
            return running
        start, lost = _start(connection, stream, store, newest)
        if running is not None:
            if not lost or (running.base is None and not _lost(connection, stream, running)):
                return _again(connection, store, running, builder, lease)
            _abandon(connection, store, running.version)
        rekeyed = newest is not None and _rekeyed(connection, store, newest, code)
        base = None if lost or rekeyed else newest
        if base is not None and current:
            start_json, end_json = json.dumps(base.cut), json.dumps(target.to_json())
            if not sql.events_between(
                connection, stream_id=stream.stream_id, start=start_json, end=end_json
            ):
                return _advance(connection, store, stream, base, target, at)
        kind = REBUILT if base is None else EXTENDED if current else CONVERTED
        from_cut = stream.head if base is None else start
        since = complete_since(connection, stream)
        version = sql.begin(
            connection,
            store_id=store.store_id,
            definition=store.definition_number,
            kind=kind,
            base=None if base is None else base.version,
            from_cut=json.dumps(from_cut),
            cut=json.dumps(target.to_json()),
            clock=at,
            since=since,
            lost=lost,
            builder=builder,
            lease=lease,
            code=code,
        )
        return Build(store, version, 1, kind, base, from_cut, target.to_json(), at, code)

    return database.transaction(work)


def _target(
    connection: Connection, stream: LockedStream, cut: Cut | None, clock: int | None
) -> tuple[StreamCut, int]:
    """Return the cut to be complete to, at least the head, and its clock."""
    row = sql.target(
        connection,
        stream_id=stream.stream_id,
        cut=None if cut is None else json.dumps(cut),
        clock=clock,
        last=stream.last_clock,
    )
    (target,) = load_cuts(connection, stream.stream_id, row.cut)
    return target, row.clock


def _is_current(store: AdjunctStore, version: AdjunctVersion, code: str | None) -> bool:
    """Return whether a version has the store's present keys and values."""
    return version.definition == store.definition_number and version.code == code


def _rekeyed(
    connection: Connection, store: AdjunctStore, version: AdjunctVersion, code: str | None
) -> bool:
    """Return whether the keys of a version are not those of the store's present definition."""
    row = sql.keys(connection, store_id=store.store_id, definition=version.definition)
    wanted: AdjunctDefinition = store.definition
    # The code of all functions has one hash: a function that makes keys may be another one now.
    other_code = bool(wanted.key_type) and version.code != code
    return (row.key, row.key_type) != (wanted.key, wanted.key_type) or other_code


def _running(
    connection: Connection, store: AdjunctStore, builder: str, code: str | None
) -> Running | Build | None:
    """Return who builds a version now, or the version whose builder is gone, if there is one.

    A version that is being built by another definition is abandoned.
    """
    row = sql.building(connection, store_id=store.store_id)
    if row is None:
        return None
    if row.definition != store.definition_number or row.code != code:
        _abandon(connection, store, row.version)
        return None
    if row.leased > 0 and row.builder != builder:
        return Running(row.version, row.builder, row.leased)
    base = None if row.base is None else read_version(connection, store.store_id, row.base)
    return Build(
        store, row.version, row.attempt, row.kind, base, row.from_cut, row.cut, row.clock, row.code
    )


def _start(
    connection: Connection,
    stream: LockedStream,
    store: AdjunctStore,
    newest: AdjunctVersion | None,
) -> tuple[Cut, int]:
    """Return where a store continues to read its stream, and how many events were truncated before
    it has read them. Raises Truncated for such a gap, unless the store is then rebuilt."""
    # Before its first version a store has read nothing: it is where its group entered the stream.
    start = (
        sql.entered(connection, group_id=store.group_id, stream_id=stream.stream_id)
        if newest is None
        else newest.cut
    )
    lost, gone = _missing(connection, stream, start)
    if lost and store.configuration.on_gap == "fail":
        so = "its keys may have old values" if newest else "its first version would lack them"
        raise Truncated(
            "adjunct_gap",
            f"{gone}, before adjunct store {store.name} read them, so {so}; to build it from what "
            "is left, "
            f"{do('update_adjunct_store', adjunct_store=store.name, on_gap='rebuild')}.",
        )
    return stream.head if newest is None else start, lost


def _missing(connection: Connection, stream: LockedStream, start: Cut) -> tuple[int, str]:
    """Return how many events after a cut were truncated (-1: nobody knows), and a phrase for it."""
    try:
        missing = missing_after(connection, stream.stream_id, start, None)
    except Truncated:  # the rows of its segments were pruned
        return -1, f"an unknown number of events of stream {stream.name} were truncated"
    return (0, "") if missing is None else (missing.events, str(missing))


def _lost(connection: Connection, stream: LockedStream, build: Build) -> bool:
    """Return whether some of the events of a build were truncated since it began."""
    return _missing(connection, stream, build.from_cut)[0] != 0


def _advance(
    connection: Connection,
    store: AdjunctStore,
    stream: LockedStream,
    version: AdjunctVersion,
    cut: StreamCut,
    clock: int,
) -> AdjunctVersion:
    """Move the cut of the newest version forward, over epochs in which nothing was appended."""
    sql.advance(
        connection,
        store_id=store.store_id,
        version=version.version,
        cut=json.dumps(cut.to_json()),
        clock=clock,
    )
    place_at(connection, store.group_id, {stream.stream_id: cut})
    return read_version(connection, store.store_id, version.version)


def _again(
    connection: Connection, store: AdjunctStore, build: Build, builder: str, lease: float
) -> Build:
    """Begin another attempt at a version; what the one before has written becomes garbage."""
    _discard(connection, store, build.version)
    sql.again(
        connection, store_id=store.store_id, version=build.version, builder=builder, lease=lease
    )
    return replace(build, attempt=build.attempt + 1)


def _abandon(connection: Connection, store: AdjunctStore, version: int) -> None:
    _discard(connection, store, version)
    sql.abandon(connection, store_id=store.store_id, version=version)


def _discard(connection: Connection, store: AdjunctStore, version: int) -> None:
    """Make garbage of what the present attempt at a version has written."""
    attempt = sql.attempt_of(connection, store_id=store.store_id, version=version)
    sql.discard(connection, folder=adjunct_attempt_folder(store.store_id, version, attempt))


def stores_to_build(
    connection: Connection, names: Sequence[str] | None = None
) -> tuple[list[str], dict[str, str | None]]:
    """Return two groups of stores: the names of those that may have to be built (the stream has
    moved, the definition has changed, or a build was begun), and, for the others with functions,
    the hash of the code that built the newest version.

    What may have killed its builder comes last, because whoever builds it may die and build none
    after it. `names`: only of these stores, now; None: of all that do not rest after several
    attempts of which none said how it ended.
    """
    rows = sql.to_build(
        connection,
        names=None if names is None else list(names),
    )
    return [r.name for r in rows if r.moved], {r.name: r.code for r in rows if not r.moved}
