"""Pin a version of each store to a batch, in steps of which each can be resumed.

After a batch is recorded, the clock of its stores is chosen and closed in their streams: that of
its newest event, or in an aligned group that up to which it reads. It gives the cut to which a
version must be complete. Both are recorded. Then such a version is found or built, and pinned.
Whoever takes the batch over continues with what is recorded, so all attempts at a batch read the
same version.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.adjunct.stores import AdjunctStore, lock_store, read_store
from weir.adjunct.versions import AdjunctVersion, find_version, read_version
from weir.controller.epochs import close
from weir.controller.locks import LockedStream
from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound
from weir.queries.adjunct import pins as sql
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.locks import lock_streams_and_group
from weir.reader_groups.positions import place_at
from weir.reader_groups.starting_points import find_cuts


@dataclass(frozen=True)
class Pin:
    """What a batch reads of a store.

    `cut`, `clock`: the version must have everything up to them. `since`: the oldest clock of the
    batch's events, if the store keeps its history. `pinned`: whether the version is decided;
    without a `version` the batch then joins an empty table.
    """

    store: AdjunctStore
    cut: Cut
    clock: int
    since: int | None
    pinned: bool
    version: AdjunctVersion | None


def bind_stores(connection: Connection, names: Sequence[str]) -> dict[str, AdjunctStore]:
    """Return the stores that a consumer binds, by name. Raises NotFound, and InvalidInput if one is
    named twice."""
    if len(set(names)) < len(names):
        raise InvalidInput(
            "argument_invalid",
            f"an adjunct store is named twice ({', '.join(names)}); name each store once.",
        )
    return {name: read_store(connection, name) for name in names}


def pass_over(database: Database, group: str, stream_ids: Sequence[int]) -> dict[int, Cut]:
    """Move a group to the tail of those of its streams that are not delivered to its consumer.

    Return, by stream id, the cut up to which the run reads each of these streams: where the group
    now stands.

    A stream of which an open batch still holds segments is left where it is.
    """
    if not stream_ids:
        return {}

    def work(connection: Connection) -> dict[int, Cut]:
        streams, locked = lock_streams_and_group(connection, group, ids=stream_ids)
        rows = sql.places(
            connection, group_id=locked.group_id, ids=[stream.stream_id for stream in streams]
        )
        moved = [row.stream_id for row in rows if not row.reading and row.at != row.tail]
        tails = {s.stream_id: find_cuts(connection, [s], "tail") for s in streams}
        if moved:
            place_at(connection, locked.group_id, {s: tails[s][s] for s in moved})
        return {row.stream_id: row.at if row.reading else row.tail for row in rows}

    return database.transaction(work)


def record_targets(
    database: Database,
    batch: Batch,
    stores: Mapping[str, AdjunctStore],
    not_delivered: Collection[int],
) -> dict[str, Pin]:
    """Choose and close the clock of a batch's stores, record the cut to which each must be
    complete, and return what is recorded: of an earlier attempt, if there was one.

    `not_delivered`: streams whose events take no part in it.

    Raises Fenced if the batch was taken over, Truncated for a cut below the head, NotFound if the
    stream of a store was deleted before a version was built, and InvalidInput (`time_in_future`)
    while the clock of the server is behind that of the batch.
    """

    def work(connection: Connection) -> dict[str, Pin]:
        pins = read_pins(connection, batch, stores)
        if set(pins) == set(stores):
            return pins
        new = [store for name, store in stores.items() if name not in pins]
        # What a store has of a deleted stream stays readable.
        ids = sql.existing(connection, ids=[store.stream_id for store in new])
        locked, _ = lock_streams_and_group(connection, batch.group, ids=ids)
        streams = {stream.stream_id: stream for stream in locked}
        check_held(connection, batch)
        oldest, newest = _clocks(connection, batch, not_delivered)
        newest = newest if batch.up_to is None else batch.up_to
        if locked:
            close(connection, locked, newest)
        for store in new:
            cut, clock = _target(connection, store, streams.get(store.stream_id), newest)
            sql.pin_target(
                connection,
                group_id=batch.group_id,
                batch_id=batch.batch_id,
                store_id=store.store_id,
                cut=json.dumps(cut),
                clock=clock,
                since=None if store.configuration.history is None else oldest,
            )
        return read_pins(connection, batch, stores)

    return database.transaction(work)


def pin_version(
    database: Database, batch: Batch, store: AdjunctStore, version: AdjunctVersion | None
) -> bool:
    """Pin a version to a batch, or with None an empty table; an earlier pin stays. Return False if
    the version has expired meanwhile. Raises Fenced if the batch was taken over."""

    def work(connection: Connection) -> bool:
        lock_streams_and_group(connection, batch.group)
        check_held(connection, batch)
        lock_store(connection, store.store_id)
        pinned = sql.pin_version(
            connection,
            group_id=batch.group_id,
            batch_id=batch.batch_id,
            store_id=store.store_id,
            version=None if version is None else version.version,
        )
        return pinned > 0 or read_pins(connection, batch, {store.name: store})[store.name].pinned

    return database.transaction(work)


def read_pins(
    connection: Connection, batch: Batch, stores: Mapping[str, AdjunctStore]
) -> dict[str, Pin]:
    """Return what is recorded of a batch's stores, by name. An open batch protects its versions."""
    rows = sql.pins(connection, group_id=batch.group_id, batch_id=batch.batch_id)
    by_id = {row.store_id: row for row in rows}
    found = {name: (s, by_id[s.store_id]) for name, s in stores.items() if s.store_id in by_id}
    return {
        name: Pin(
            store, row.cut, row.clock, row.since, row.pinned,
            None if row.version is None else read_version(connection, store.store_id, row.version),
        )
        for name, (store, row) in found.items()
    }  # fmt: skip


def _clocks(
    connection: Connection, batch: Batch, not_delivered: Collection[int]
) -> tuple[int, int]:
    """Return the clocks of the oldest and of the newest event that a batch delivers."""
    delivered = [b for b in batch.bounds if b.stream_id not in not_delivered and b.end > b.start]
    row = sql.clocks(
        connection,
        streams=[b.stream_id for b in delivered],
        segments=[b.segment_id for b in delivered],
        starts=[b.start for b in delivered],
        ends=[b.end for b in delivered],
    )
    return row.oldest, row.newest


def _target(
    connection: Connection, store: AdjunctStore, stream: LockedStream | None, last: int
) -> tuple[Cut, int]:
    """Return the cut to which a version must be complete, and its clock, which is closed."""
    word = store.configuration.bootstrap.strip()
    if stream is None or word == "none":
        newest = find_version(connection, store.store_id)
        if newest is not None:
            return newest.cut, newest.clock
        if stream is None:
            raise NotFound(
                "stream_deleted",
                f"stream {store.stream} of adjunct store {store.name} was deleted before a version "
                "of the store was built, so it has no rows; join another store.",
            )
        word = "tail"
    if word == "batch":
        return sql.cut_at(connection, stream=str(stream.name), clock=last), last
    cut = find_cuts(connection, [stream], word)[stream.stream_id].to_json()
    clock = sql.clock_before(connection, stream_id=stream.stream_id, cut=json.dumps(cut))
    return cut, max(last, stream.last_clock) if clock is None else clock
