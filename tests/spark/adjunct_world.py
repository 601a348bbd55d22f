"""A stream of changes with adjunct stores over it, and a brute-force oracle that keeps every
event."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tests.spark.installation import Installation
from tests.world.streams import unique
from weir.adjunct.stores import define_store, update_store
from weir.adjunct.versions import AdjunctVersion
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import StreamName, stream_name
from weir.spark.adjuncts.build import build_version
from weir.spark.adjuncts.read import current_frame, history_frame
from weir.spark.consumers.reader import Reader

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64(), "op": pa.string()})
EVENTS = stream_name("s/events")  # that a group reads beside a stream of changes
LONG = 10_000_000
_KEYS = asdict(AdjunctDefinition()).keys()


@dataclass(frozen=True)
class Event:
    k: str | None
    n: int
    op: str = "u"
    clock: int = 0


@dataclass(frozen=True)
class Way:
    """A definition, and what it means in Python: the key of an event, and its value as a tuple;
    None deletes the key."""

    definition: AdjunctDefinition
    key: Callable[[Event], Any]
    value: Callable[[Event], tuple[Any, ...] | None]


def _whole(event: Event) -> tuple[Any, ...]:
    return (event.k, event.n, event.op)


WAYS = {
    "whole": Way(AdjunctDefinition(), lambda e: e.k, _whole),
    "deletes": Way(
        AdjunctDefinition(delete_when="op = 'd'"), lambda e: e.k,
        lambda e: None if e.op == "d" else _whole(e),
    ),
    "struct": Way(
        AdjunctDefinition(
            value="concat(op, n) AS told, op", delete_when="op = 'd' and n < 50"
        ),
        lambda e: e.k,
        lambda e: None if e.op == "d" and e.n < 50 else (f"{e.op}{e.n}", e.op),
    ),
    "upper": Way(
        AdjunctDefinition(key="upper(k)", value="n"), lambda e: e.k and e.k.upper(),
        lambda e: (e.n,),
    ),
    "tombstones": Way(  # whose value can't be computed, and need not be
        AdjunctDefinition(value="n, int(op) AS op", delete_when="op = 'd'"),
        lambda e: e.k, lambda e: None if e.op == "d" else (e.n, int(e.op)),
    ),
    "number": Way(
        AdjunctDefinition(key="n", value="lower(k)"), lambda e: e.n,
        lambda e: None if e.k is None else (e.k.lower(),),
    ),
}  # fmt: skip


@dataclass
class World:
    """One stream whose events are all known."""

    weir: Installation
    stream: StreamName
    events: list[Event] = field(default_factory=list)

    @classmethod
    def made(cls, weir: Installation, segments: int = 2, **options: Any) -> "World":
        given = {"on_missing_key": "spread", **options}
        return cls(weir, weir.create(f"s/{unique('changes')}", segments=segments, **given))

    @classmethod
    def beside_events(cls, weir: Installation) -> "World":
        """Return another stream, beside one of events that a group reads, and one for the group's
        output."""
        weir.create(str(EVENTS), segments=2)
        weir.create("s/out")
        weir.group(EVENTS)
        return cls.made(weir)

    def append(self, rows: Sequence[tuple[str | None, int, str]]) -> None:
        dicts = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        done = self.weir.put(self.stream, pa.Table.from_pylist(dicts, SCHEMA))
        self.events += [Event(*row, clock=done.clock) for row in rows]

    def grow(self, random: Random, most: int = 30) -> None:
        """Append upserts, deletes, re-inserts, null keys and duplicates."""
        keys = [None, *"abcdeABCDE", "ä", "x" * 50]
        self.append(
            [
                (random.choice(keys), random.randrange(100), random.choice("555d"))
                for _ in range(random.randrange(1, most))
            ]
        )

    def change_segments(self, random: Random) -> None:
        """Split a segment, or merge two."""
        active = self.weir.query(
            """SELECT segment FROM segments WHERE stream = :s AND active ORDER BY key_low""",
            s=str(self.stream),
        )
        names = [row.segment for row in active]
        if len(names) > 3 and random.random() < 0.5:
            self.weir.scale(self.stream, names[:2], parts=1)
        else:
            self.weir.scale(self.stream, [random.choice(names)], parts=2)

    def truncate(self) -> None:
        """Truncate all that there is."""
        tail = self.weir.value("SELECT tail FROM streams WHERE stream = :s", s=str(self.stream))
        self.weir.truncate(self.stream, ", ".join(f"{s}={n}" for s, n in tail.items()))

    def store(self, way: Way, **options: Any) -> "Store":
        name = f"s/{unique('store')}"
        define_store(
            self.weir.database, name, self.stream, AdjunctConfiguration(**options), way.definition,
            request_id=unique("define"),
        )  # fmt: skip
        return Store(self, name, way)


@dataclass
class Store:
    """A store, and what must be in it."""

    world: World
    name: str
    way: Way

    def build(self, **how: Any) -> AdjunctVersion:
        return build_version(self.world.weir.opened, self.name, **how)

    def redefine(self, way: Way) -> None:
        update_store(
            self.world.weir.database, self.name, {}, asdict(way.definition),
            request_id=unique("update"),
        )  # fmt: skip
        self.way = way

    def expected(self, events: Sequence[Event] | None = None) -> dict[Any, tuple[Any, ...]]:
        """Return what the keys are after these events, or after all."""
        held: dict[Any, tuple[Any, ...]] = {}
        for event in self.world.events if events is None else events:
            if (key := self.way.key(event)) is None:
                continue
            held.pop(key, None)
            if (value := self.way.value(event)) is not None:
                held[key] = value
        return held

    def found(self, version: AdjunctVersion) -> dict[Any, tuple[Any, ...]]:
        """Return what a version has, in which each key must be there once."""
        weir = self.world.weir
        rows = current_frame(weir.spark, weir.settings.warehouse, version).drop("_clock").collect()
        held = {row[0]: tuple(row[1:]) for row in rows}
        assert len(held) == len(rows) == version.rows
        return held

    def found_at(self, version: AdjunctVersion, since: int, clock: int) -> dict[Any, Any]:
        """Return what the history says of a clock."""
        weir = self.world.weir
        frame = history_frame(
            weir.spark, weir.database, weir.settings.warehouse, version, since
        )  # fmt: skip
        held: dict[Any, Any] = {}
        rows = [row for row in frame.collect() if row["_clock"] <= clock]
        for row in sorted(rows, key=lambda row: (row["_clock"], row["_seq"])):
            held.pop(row[0], None)
            if not row["_deleted"]:
                held[row[0]] = tuple(row[1:-3])
        return held


def reading(weir: Installation, *stores: Store, group: str = "readers", **options: Any) -> Reader:
    """Return a reader of a group that binds these stores."""
    return Reader(
        weir.spark, group, reader_id="one", installation=weir.opened,
        adjuncts=[store.name for store in stores], **options,
    )  # fmt: skip


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)
