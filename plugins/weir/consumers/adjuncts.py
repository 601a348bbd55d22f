"""Adjunct stores that a consumer binds: a version of each is pinned to a batch."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from weir.adjunct.pins import Pin, bind_stores, pin_version, record_targets
from weir.adjunct.stores import AdjunctStore
from weir.adjunct.versions import AdjunctVersion, find_version
from weir.controller.queries import Cut
from weir.errors import InvalidInput, NotFound
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.reading import Manager
from weir.reader_groups.group_streams import group_streams

_PAUSE = 0.05  # seconds until the clock of the server is looked at again
Build = Callable[[str, Cut, int], AdjunctVersion]  # of a store, to a cut and its clock


class AdjunctStoreManager:
    """Decide for a consumer what of its streams is delivered, and what of its stores is seen.

    This is the default: a stream of a joined store is not delivered, all events of the other
    streams are, and every row of a store is seen. A consumer can replace it by a subclass
    (`manager="module:factory"`; the factory gets `stores`). Its answers must depend on nothing but
    their arguments, so that every attempt at a batch gets the same. Events that are not delivered
    count as read. Events and rows are DataFrames of Spark, or tables of pyarrow.
    """

    def __init__(self, stores: Mapping[str, str]) -> None:
        """`stores`: by the name of each store that the consumer binds, its stream."""
        self.stores = dict(stores)

    def delivers(self, stream: str) -> bool:
        """Return whether events of a stream of the group are delivered."""
        return stream not in self.stores.values()

    def delivered(self, stream: str, events: Any) -> Any:
        """Return those of the events of a stream that are delivered, with the same columns."""
        return events

    def stored(self, store: str, rows: Any) -> Any:
        """Return those of the rows of a store that the consumer sees: of its table, or for an as-of
        join of its changes. A row that is left out is like one that was never stored."""
        return rows


@dataclass(frozen=True)
class Binding:
    """The stores that the consumer of a group binds, and what its manager delivers of the group's
    streams. `not_delivered`: by id the streams of which nothing is."""

    stores: Mapping[str, AdjunctStore]
    manager: AdjunctStoreManager
    not_delivered: Mapping[int, str]

    def pins(self, app: Installation, batch: Batch, build: Build) -> dict[str, Pin]:
        """Return for each store which version a batch is read with; choose and pin it if no earlier
        attempt has.

        A version that is missing is built by `build`, or waited for, unless the store's `missing`
        says otherwise. Raises NotFound if it must be there, Fenced if the batch was taken over, and
        whatever building a version raises.
        """
        if not self.stores:
            return {}
        pins = _recorded(app, batch, self)
        while preparing := [pin for pin in pins.values() if not pin.pinned]:
            for pin in preparing:
                pin_version(app.database, batch, pin.store, _find(app, pin, build))
            pins = _recorded(app, batch, self)
        for name, pin in pins.items():
            what = f"version {pin.version.version}" if pin.version else "an empty table"
            app.say(f"batch {batch.batch_id} of {batch.group} is read with {what} of {name}")
        return pins

    def check_output(self, group: str, stream: str) -> None:
        """Raise InvalidInput if a consumer that writes to a stream binds a store of it that must be
        complete to its tail, which each batch moves."""
        for name, store in self.stores.items():
            if str(store.stream) == stream and store.configuration.bootstrap == "tail":
                raise InvalidInput(
                    "group_unsuitable",
                    f"reader group {group} writes to {stream} and binds adjunct store {name} of "
                    "it, which must be complete to the tail, so it would run after its own output; "
                    "name another output, or "
                    f"{do('update_adjunct_store', adjunct_store=name, bootstrap='batch')}.",
                )


def bind(
    connection: Connection, group: str, names: Sequence[str], factory: Manager | None
) -> Binding:
    """Bind stores for the consumer of a group. Raises NotFound for a store, and InvalidInput if no
    stream would be delivered, or if the factory makes something else than a manager."""
    stores = bind_stores(connection, names)
    manager = (factory or AdjunctStoreManager)(
        {name: str(store.stream) for name, store in stores.items()}
    )
    if not isinstance(manager, AdjunctStoreManager):
        raise InvalidInput(
            "argument_invalid",
            f"the factory of the manager returned a {type(manager).__name__}; it must return a "
            "weir.spark.AdjunctStoreManager.",
        )
    streams = {s.stream_id: s.name for s in group_streams(connection, group)}
    left_out = {i: name for i, name in streams.items() if not manager.delivers(name)}
    if streams and left_out == streams:
        raise InvalidInput(
            "group_unsuitable",
            f"all streams of reader group {group} ({', '.join(streams.values())}) are joined as "
            "adjunct stores, so there would be no events to deliver; let the group read another "
            "stream, too.",
        )
    return Binding(stores, manager, left_out)


def _recorded(app: Installation, batch: Batch, binding: Binding) -> dict[str, Pin]:
    end = time.monotonic() + app.settings.reader_lease
    while True:
        try:
            return record_targets(app.database, batch, binding.stores, binding.not_delivered)
        except InvalidInput as error:  # two commits in a microsecond: the second is ahead of it
            if error.code != "time_in_future" or time.monotonic() > end:
                raise
            time.sleep(_PAUSE)


def _find(app: Installation, pin: Pin, build: Build) -> AdjunctVersion | None:
    store = pin.store
    found = app.database.snapshot(lambda c: find_version(c, store.store_id, pin.cut, pin.clock))
    if found is not None or store.configuration.missing == "empty":
        return found
    if store.configuration.missing == "fail":
        raise NotFound(
            "adjunct_version_not_found",
            f"adjunct store {store.name} has no version that is complete to {pin.cut}; "
            f"{do('adjunct', adjunct_stores=[store.name])}, or to build it when it is missing "
            f"{do('update_adjunct_store', adjunct_store=store.name, missing='wait')}.",
        )
    return build(store.name, pin.cut, pin.clock)
