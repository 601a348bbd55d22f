"""A stream whose columns change, beside a model that keeps each row by itself."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.world.streams import Lane, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.kernel.schema import to_arrow, with_default
from weir.model.column_changes import ColumnChanges
from weir.model.schema import Field, Kind, list_of, map_of, new_field
from weir.programs.opening import shared
from weir.settings import Settings

WIDER = {
    "byte": ["short", "integer", "long", "decimal(12,2)"], "float": ["double"],
    "integer": ["long", "decimal(12,2)", "decimal(38,28)"],
    "long": ["decimal(20,0)", "decimal(38,18)"],
    "date": ["timestamp_ntz"], "decimal(5,2)": ["decimal(7,2)", "decimal(12,4)", "decimal(30,5)"],
}  # fmt: skip
# With more digits than a default may have.
LARGE = ("decimal(20,0)", "decimal(30,5)", "decimal(38,18)", "decimal(38,28)")
NESTED = ("array", "map", "struct")
DEFAULTS = {
    "byte": "-7", "integer": "7", "long": "123456789012", "float": "0.1", "double": "0.1",
    "date": "2013-01-02", "decimal(5,2)": "1.50", "string": "it's \\ a \"text\"", "boolean": "true",
    "timestamp": "2013-01-02 03:04:05.000006Z", "timestamp_ntz": "2013-01-02 03:04:05",
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "byte": [-128, 127, None], "short": [-32768, 300], "integer": [-(2**31), 2**31 - 1, None],
    "long": [2**63 - 1, 5], "float": [0.10000000149011612, float("inf"), None],
    "double": [0.1, 1e300], "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "decimal(5,2)": [Decimal("999.99"), Decimal("1.50"), None],
    "decimal(7,2)": [Decimal("99999.99")], "decimal(12,4)": [Decimal("-12345678.1234")],
    "decimal(30,5)": [Decimal("1234567890123456789012345.12345")],
    "decimal(12,2)": [Decimal("-9999999999.99"), None], "decimal(20,0)": [Decimal("9" * 20)],
    "decimal(38,18)": [Decimal("9" * 20 + "." + "9" * 18)],
    "decimal(38,28)": [Decimal("0." + "1" * 28)],
    "timestamp_ntz": [datetime.datetime(2013, 1, 1, 1, 2, 3, 4)],
    "timestamp": [datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC), None],
    "string": ["", "x", None], "boolean": [True, False, None],
}  # fmt: skip


def type_of(kind: str) -> Kind:
    """A type of Spark's: also of `array<long>`, `map<long>` from and to it, and `struct<long>`."""
    outer, _, inner = kind.removesuffix(">").partition("<")
    if outer == "array":
        return list_of(inner)
    if outer == "map":
        return map_of(inner, inner)
    return {"type": "struct", "fields": [new_field("x", inner)]} if inner else kind


def wider_than(kind: str) -> list[str]:
    """The types to which a column may be widened at once."""
    outer, _, inner = kind.removesuffix(">").partition("<")
    return [f"{outer}<{one}>" for one in WIDER.get(inner, [])] if inner else WIDER.get(kind, [])


def values_of(kind: str) -> list[Any]:
    """Values of a type, the largest among them."""
    outer, _, inner = kind.removesuffix(">").partition("<")
    if not inner:
        return VALUES[kind]
    some = [one for one in VALUES[inner] if one is not None]
    if outer == "array":
        return [[*some, None], [], None]
    if outer == "map":
        return [[(one, one) for one in some], [(some[0], None)], [], None]
    return [*({"x": one} for one in [*some, None]), None]


def column(name: str, kind: str, default: str | None = None) -> Field:
    made = new_field(name, type_of(kind))
    return made if default is None else with_default(made, default)


def converted(value: Any, kind: str) -> Any:
    """A value as a wider type has it."""
    outer, _, inner = kind.removesuffix(">").partition("<")
    if value is None:
        return None
    if outer == "array":
        return [converted(one, inner) for one in value]
    if outer == "map":
        return [(converted(key, inner), converted(one, inner)) for key, one in value]
    if outer == "struct":
        return {"x": converted(value["x"], inner)}
    if kind == "timestamp_ntz" and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return pa.scalar(value, to_arrow([column("x", kind)]).field(0).type).as_py()


@dataclass
class Model:
    """A stream that keeps each row as a dictionary by numbers of columns, which nothing changes."""

    columns: list[tuple[int, str, str]] = field(default_factory=list)  # number, name, type
    defaults: dict[int, Any] = field(default_factory=dict)
    rows: list[dict[int, Any]] = field(default_factory=list)
    number: int = 0

    def add(self, name: str, kind: str, default: str | None) -> Field:
        made = column(name, kind, default)
        self.columns.append((self.number, name, kind))
        if default is not None:
            given = column(name, kind)
            self.defaults[self.number] = pa.scalar(made["default"]).cast(
                to_arrow([given]).field(0).type
            )
        self.number += 1
        return made

    def read(self) -> list[dict[str, Any]]:
        found = []
        for row in self.rows:
            seen = {}
            for number, name, kind in self.columns:
                value = row.get(number)
                if number not in row and number in self.defaults:
                    value = self.defaults[number].as_py()
                seen[name] = converted(value, kind)
            found.append(seen)
        return found


@dataclass
class World:
    """A stream and its model."""

    lane: Lane
    settings: Settings
    random: Random
    model: Model

    @classmethod
    def made(cls, database: Database, settings: Settings, random: Random) -> "World":
        model = Model()
        fields = [model.add("key", "string", None), model.add("a", "integer", None)]
        lane = Lane.made(database, fields=fields, on_new_column="add")
        return cls(lane, settings, random, model)

    def append(self) -> None:
        """Append rows that lack some columns, and may have a new one."""
        random, model = self.random, self.model
        if random.random() < 0.2 and (name := self.free_name()):
            model.add(name, self.some_kind(), None)
            fresh = {model.number - 1}
        else:
            fresh = set()
        given = [
            one for one in model.columns
            if one[1] == "key" or one[0] in fresh or random.random() < 0.7
        ]  # fmt: skip
        rows = [
            {number: random.choice(values_of(kind)) for number, _, kind in given} for _ in range(3)
        ]
        for row in rows:
            row[0] = "k"
        table = pa.table(
            {name: pa.array([row[number] for row in rows],
                            to_arrow([column(name, kind)]).field(0).type)
             for number, name, kind in given}
        )  # fmt: skip
        if random.random() < 0.25:
            self.ingest(table, [name for number, name, _ in given if number not in fresh])
        else:
            shared(self.settings).append(
                str(self.lane.name), table, writer_id="w", batch_id=unique("b")
            )
        model.rows += rows

    def ingest(self, table: pa.Table, known: list[str]) -> None:
        """Append rows as a file in which columns of the stream have the names of each other."""
        theirs = dict(zip(known, self.random.sample(known, len(known)), strict=True))
        path = Path(self.settings.input_roots[0], f"{unique('file')}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.rename_columns([theirs.get(n, n) for n in table.column_names]), path)
        rename = [f"`{one}` -> `{name}`" for name, one in theirs.items()]
        files = [path.name]
        shared(self.settings).ingest(str(self.lane.name), files, rename=rename, engine="pyarrow")

    def some_kind(self) -> str:
        if self.random.random() < 0.5:
            return self.random.choice(list(DEFAULTS))
        return f"{self.random.choice(NESTED)}<{self.random.choice(list(WIDER))}>"

    def free_name(self) -> str:
        taken = {name.lower() for _, name, _ in self.model.columns}
        free = [name for name in ("a", "b", "A", "c", "a#2", "ä ö") if name.lower() not in taken]
        return self.random.choice(free) if free else ""

    def change(self) -> None:
        """Change columns: rename (also two that swap), drop, widen, add with a default."""
        random, model = self.random, self.model
        changes: dict[str, Any] = {"rename": {}, "drop": [], "widen": [], "add": []}
        others = [one for one in model.columns if one[1] != "key"]
        what = random.choice(["rename", "swap", "drop", "widen", "add"])
        if what == "rename" and others and (new := self.free_name()):
            one = random.choice(others)
            changes["rename"][one[1]] = new
            model.columns[model.columns.index(one)] = (one[0], new, one[2])
        elif what == "swap" and len(others) > 1:
            x, y = random.sample(others, 2)
            changes["rename"] = {x[1]: y[1], y[1]: x[1]}
            i, j = model.columns.index(x), model.columns.index(y)
            model.columns[i], model.columns[j] = (x[0], y[1], x[2]), (y[0], x[1], y[2])
        elif what == "drop" and others:
            one = random.choice(others)
            changes["drop"] = [one[1]]
            model.columns.remove(one)
        elif what == "widen":
            wide = [
                (one, kind) for one in others for kind in wider_than(one[2])
                if one[0] not in model.defaults or kind not in LARGE
            ]  # fmt: skip
            if wide:
                one, kind = random.choice(wide)
                changes["widen"] = [column(one[1], kind)]
                model.columns[model.columns.index(one)] = (one[0], one[1], kind)
        elif what == "add" and (name := self.free_name()):
            kind = self.some_kind()
            changes["add"] = [model.add(name, kind, random.choice([None, DEFAULTS.get(kind)]))]
        update(self.lane, **changes)

    def check(self) -> None:
        found = shared(self.settings).read(str(self.lane.name))
        names = [name for _, name, _ in self.model.columns]
        assert found.column_names[: len(names)] == names
        kinds = to_arrow([column(name, kind) for _, name, kind in self.model.columns])
        assert found.select(names).schema.equals(kinds, check_metadata=True)
        assert found.select(names).to_pylist() == self.model.read()


def update(lane: Lane, **changes: Any) -> Mapping[str, Any]:
    return update_stream(
        lane.database, lane.name, {}, column_changes=ColumnChanges(**changes),
        request_id=unique("columns"),
    )  # fmt: skip
