"""Adjunct stores in a consumer: a version of each is pinned to a batch and joined with its events.

`AdjunctStoreManager` decides what of the streams is delivered and what of the stores is seen.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from sqlalchemy import Connection

from weir.adjunct.pins import Pin, bind_stores, pin_version, record_targets
from weir.adjunct.stores import AdjunctStore, routing_key_of
from weir.adjunct.versions import AdjunctVersion, find_version
from weir.controller.streams import schema_by_id
from weir.errors import InvalidInput, NotFound, check_choice
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.reader_groups.batch import Batch
from weir.reader_groups.group_streams import group_streams
from weir.spark.adjuncts.as_of import join_as_of
from weir.spark.adjuncts.build import build_version
from weir.spark.adjuncts.changes import changes_of_nothing
from weir.spark.adjuncts.read import current_frame, history_frame
from weir.spark.base.exact import quoted
from weir.spark.base.session import private_session
from weir.spark.failures.lost_files import saying_why

KEY = "_weir_key"
_HINTS = {"broadcast": "broadcast", "partitioned": "shuffle_hash"}
_PAUSE = 0.05  # seconds until the clock of the server is looked at again


class AdjunctStoreManager:
    """Decide for a consumer what of its streams is delivered, and what of its stores is seen.

    This is the default: a stream that is bound as a store is not delivered, all events of the other
    streams are, and every row of a store is seen. A consumer can replace it by a subclass
    (`manager="module:factory"`; the factory gets `stores`). Its answers must depend on nothing but
    their arguments, so that every attempt at a batch gets the same. Events that are not delivered
    count as read.
    """

    def __init__(self, stores: Mapping[str, str]) -> None:
        """`stores`: by the name of each store that the consumer binds, its stream."""
        self.stores = dict(stores)

    def delivers(self, stream: str) -> bool:
        """Return whether events of a stream of the group are delivered."""
        return stream not in self.stores.values()

    def delivered(self, stream: str, events: DataFrame) -> DataFrame:
        """Return those of the events of a stream that are delivered, with the same columns."""
        return events

    def stored(self, store: str, rows: DataFrame) -> DataFrame:
        """Return those of the rows of a store that the consumer sees: of its table, or for an as-of
        join of its changes. A row that is left out is like one that was never stored."""
        return rows


Factory = Callable[[Mapping[str, str]], AdjunctStoreManager]


@dataclass(frozen=True)
class Binding:
    """The stores that the consumer of a group binds, and what its manager delivers of the group's
    streams. `not_delivered`: by id the streams of which nothing is."""

    stores: Mapping[str, AdjunctStore]
    manager: AdjunctStoreManager
    not_delivered: Mapping[int, str]

    def pins(self, app: Installation, batch: Batch) -> dict[str, Pin]:
        """Return for each store which version a batch is read with; choose and pin it if no earlier
        attempt has.

        A version that is missing is built, or waited for, unless the store's `missing` says
        otherwise. Raises NotFound if it must be there, Fenced if the batch was taken over, and
        whatever building a version raises.
        """
        if not self.stores:
            return {}
        pins = _recorded(app, batch, self)
        while preparing := [pin for pin in pins.values() if not pin.pinned]:
            for pin in preparing:
                pin_version(app.database, batch, pin.store, _find(app, pin))
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
                    "adjunct_cycle",
                    f"reader group {group} writes to {stream} and binds adjunct store {name} of "
                    "it, which must be complete to the tail, so it would run after its own output; "
                    "name another output, or "
                    f"{do('update_adjunct_store', adjunct_store=name, bootstrap='bound')}.",
                )


def bind(
    connection: Connection, group: str, names: Sequence[str], factory: Factory | None
) -> Binding:
    """Bind stores for the consumer of a group. Raises NotFound for a store, and InvalidInput if no
    stream would be delivered, or if the factory makes something else than a manager."""
    stores = bind_stores(connection, names)
    manager = (factory or AdjunctStoreManager)(
        {name: str(store.stream) for name, store in stores.items()}
    )
    if not isinstance(manager, AdjunctStoreManager):
        raise InvalidInput(
            "manager_invalid",
            f"the factory of the manager returned a {type(manager).__name__}; it must return a "
            "weir.spark.AdjunctStoreManager.",
        )
    streams = {s.stream_id: s.name for s in group_streams(connection, group)}
    left_out = {i: name for i, name in streams.items() if not manager.delivers(name)}
    if streams and left_out == streams:
        raise InvalidInput(
            "no_primary_stream",
            f"all streams of reader group {group} ({', '.join(streams.values())}) are bound as "
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


def _find(app: Installation, pin: Pin) -> AdjunctVersion | None:
    store = pin.store
    found = app.database.snapshot(lambda c: find_version(c, store.store_id, pin.cut, pin.clock))
    if found is not None or store.configuration.missing == "empty":
        return found
    if store.configuration.missing == "fail":
        raise NotFound(
            "adjunct_version_missing",
            f"adjunct store {store.name} has no version that is complete to {pin.cut}; "
            f"{do('adjunct', adjunct_stores=[store.name])}, or to build it when it is missing "
            f"{do('update_adjunct_store', adjunct_store=store.name, missing='wait')}.",
        )
    return build_version(app, store.name, cut=pin.cut, clock=pin.clock)


@dataclass(frozen=True)
class Adjuncts(Mapping[str, DataFrame]):
    """The stores of a batch: by name the DataFrame of the version that the batch is read with.

    Its columns are `_weir_key`, those of the value, and `_clock`, the clock of the key's last
    change. A small one is broadcast by whatever join it is used in.
    """

    app: Installation
    pins: Mapping[str, Pin]
    manager: AdjunctStoreManager

    def __iter__(self) -> Iterator[str]:
        return iter(self.pins)

    def __len__(self) -> int:
        return len(self.pins)

    def __getitem__(self, name: str) -> DataFrame:
        pin = self._pin(name)
        spark, warehouse = self.app.spark, self.app.settings.warehouse
        if pin.version is None:
            rows = spark.createDataFrame([], self._empty(pin))
        else:
            with saying_why(self.app.database, self.app.settings):
                rows = current_frame(spark, warehouse, pin.version)
        rows = self.manager.stored(name, rows)
        return rows.hint("broadcast") if self._hint(pin) == "broadcast" else rows

    @property
    def versions(self) -> dict[str, int | None]:
        """The number of each version; None for an empty table."""
        return {n: pin.version.version if pin.version else None for n, pin in self.pins.items()}

    def enrich(
        self,
        events: DataFrame,
        name: str,
        on: str | Column,
        how: str = "left",
        *,
        as_of: bool | str = False,
        valid_from: str = "",
        prefix: str = "",
    ) -> DataFrame:
        """Return the events with the value columns of a store, which it has for the key `on`.

        `on`: a column of the events, or an expression. `how`: "left" keeps events without a match,
        with nulls; "inner" does not. `as_of`: False joins what the version has; True what held at
        the clock of each event (its `_clock`); a name joins what held at the time in this column of
        the events. `valid_from`: the value column with the time from which a value holds; empty: it
        holds from the clock at which it was committed. `prefix`: what the names of the value
        columns begin with.

        Raises InvalidInput for an unknown store, a wrong argument, or columns of the same name; and
        Truncated if the store does not keep its changes for as long as `as_of` needs.
        """
        pin = self._pin(name)
        check_choice("how", how, ("left", "inner"))
        if valid_from and not as_of:
            raise InvalidInput(
                "argument_invalid",
                f"valid_from is {valid_from!r}, but as_of is not given; name the column with the "
                "time of the events.",
            )
        rows = self._history(pin, valid_from) if as_of else self[name]
        values = [c for c in rows.columns if c not in (KEY, "_clock", *_HISTORY)]
        theirs = {column.lower() for column in events.columns}  # as Spark compares names
        if twice := [prefix + value for value in values if (prefix + value).lower() in theirs]:
            raise InvalidInput(
                "adjunct_column_twice",
                f"the events and adjunct store {name} both have a column {twice[0]}; give enrich a "
                "prefix for the columns of the store.",
            )
        key = _as_key(events, on, rows.schema, name)
        if not as_of:
            return _join(events, rows, key, values, how, self._hint(pin), prefix)
        time_of = F.col("_clock") if as_of is True else _micros(events, str(as_of), "the events")
        joined = join_as_of(
            events, rows, key=key, time=time_of, values=values, order=["_clock", "_seq"], how=how,
            hint=self._hint(pin),
        )  # fmt: skip
        return joined.toDF(*events.columns, *[prefix + value for value in values])

    def _pin(self, name: str) -> Pin:
        if name not in self.pins:
            raise InvalidInput(
                "adjunct_not_bound",
                f"adjunct store {name} is not bound (bound: {', '.join(self.pins) or 'none'}); "
                "name it in adjuncts.",
            )
        return self.pins[name]

    def _hint(self, pin: Pin) -> str:
        return _HINTS[pin.version.layout] if pin.version else "broadcast"

    def _empty(self, pin: Pin) -> StructType:
        """Return the columns of an empty table: those of the newest version; before the first one,
        those that it will have, as far as the columns of the stream are known."""
        app, store = self.app, pin.store
        newest, columns, routing_key = app.database.snapshot(
            lambda c: (
                find_version(c, store.store_id), schema_by_id(c, store.stream_id),
                routing_key_of(c, store.stream_id),
            )
        )  # fmt: skip
        if newest is not None:
            fields = newest.fields
        elif columns:
            session = private_session(app.spark)
            fields = changes_of_nothing(
                session, columns, store.definition, routing_key, store.name, app.settings
            ).fields
        else:
            fields = [{"name": KEY, "type": "string", "nullable": True, "metadata": {}}]
        return StructType.fromJson({"type": "struct", "fields": fields}).add("_clock", "long")

    def _history(self, pin: Pin, valid_from: str) -> DataFrame:
        """Return the changes of a store with `_weir_time` and `_deleted`, as far as an as-of join
        of the batch needs them."""
        name, version = pin.store.name, pin.version
        if pin.store.configuration.history is None:
            raise InvalidInput(
                "adjunct_without_history",
                f"adjunct store {name} keeps no history, so nobody knows what held earlier; "
                f"{do('update_adjunct_store', adjunct_store=name, history='AGE')}.",
            )
        if version is None:
            rows = self[name].withColumns({"_seq": F.lit(0), "_deleted": F.lit(False)})
        else:
            app = self.app
            # A value may hold from long before it was committed, so all changes are needed then.
            since = 0 if valid_from else pin.since or 0
            warehouse = app.settings.warehouse
            with saying_why(app.database, app.settings):
                rows = history_frame(app.spark, app.database, warehouse, version, since)
            rows = self.manager.stored(name, rows)
        time_of = F.col("_clock")
        if valid_from:  # a deletion has no value and so no such time: it holds from its commit on
            begins = _micros(rows, valid_from, f"adjunct store {name}")
            time_of = F.when(F.col("_deleted"), F.col("_clock")).otherwise(begins)
        return rows.withColumn("_weir_time", time_of)


_HISTORY = ("_seq", "_deleted", "_weir_time")


def _join(
    events: DataFrame, rows: DataFrame, key: Column, values: list[str], how: str, hint: str,
    prefix: str,
) -> DataFrame:  # fmt: skip
    right = rows.select(
        F.col(KEY),
        *[c.alias(prefix + n) for c, n in zip(quoted(values), values, strict=True)],
    )
    names = events.columns
    left = events.select("*", key.alias("_weir_event_key"))
    joined = left.join(right.hint(hint), F.col("_weir_event_key") == F.col(KEY), how)
    return joined.select(*quoted([*names, *[prefix + value for value in values]]))


def _as_key(events: DataFrame, on: str | Column, schema: StructType, name: str) -> Column:
    """Return the expression of the key in the type of the store's keys. Raises InvalidInput for
    another type, and for what the events don't have."""
    if isinstance(on, str):
        on = quoted([on])[0] if on in events.columns else F.col(on)
    try:
        given: DataType = events.select(on.alias("key")).schema["key"].dataType
    except AnalysisException as error:
        raise InvalidInput(
            "adjunct_on_invalid",
            f"the key on which events are joined with adjunct store {name} can't be computed from "
            f"them ({str(error).splitlines()[0]}); name a column of the events.",
        ) from None
    wanted = schema[KEY].dataType
    if given == wanted:
        return on
    if isinstance(given, NumericType) and isinstance(wanted, NumericType):
        return on.try_cast(wanted)
    raise InvalidInput(
        "adjunct_key_type",
        f"the keys of adjunct store {name} are of type {wanted.simpleString()}, but on is of type "
        f"{given.simpleString()}; cast it.",
    )


def _micros(frame: DataFrame, column: str, whose: str) -> Column:
    """Return a time in microseconds. Raises InvalidInput if the column is not a time."""
    found: Any = frame.schema[column].dataType if column in frame.columns else None
    if isinstance(found, TimestampNTZType):  # without a time zone, it means UTC
        epoch = F.expr("timestamp_ntz '1970-01-01 00:00:00'")
        return F.timestamp_diff("MICROSECOND", epoch, quoted([column])[0])
    if not isinstance(found, TimestampType):
        what = "there is none" if found is None else f"it is a {found.simpleString()}"
        raise InvalidInput(
            "as_of_not_a_time",
            f"an as-of join needs a timestamp in column {column} of {whose}, but {what}; name "
            "another column, or cast it.",
        )
    return F.unix_micros(quoted([column])[0])
