"""One table of values through every door: the same bytes of meaning in, the same events and digests
out, or the same refusal."""

import datetime as dt
import json
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

import weir as programs
from tests.crash.jobs import write_config
from tests.digests import sum_of_rows
from tests.released import only
from tests.spark.installation import Installation
from weir.kernel.schema import from_arrow
from weir.model.names import StreamName
from weir.programs.store import StreamStore
from weir.spark.reads.source import register

UTC = dt.UTC
# Columns may have any name but Weir's own, and fields any.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "ä€😀", " a,b\"c'\r\nd\\ ", "null"]),
    "a.b": (pa.bool_(), [True, False, None, True]),
    "with space": (pa.int8(), [-128, 127, None, 0]),
    "back`tick": (pa.int16(), [-(1 << 15), (1 << 15) - 1, None, 0]),
    "UPPER": (pa.int32(), [-(1 << 31), (1 << 31) - 1, None, 0]),
    "long": (pa.int64(), [-(1 << 63), (1 << 63) - 1, None, 0]),
    "Straße": (pa.float32(), [0.5, -0.0, None, 0.25]),
    "a,b;c{}()=": (pa.float64(), [0.1, -0.0, None, 1e-300]),
    "select": (pa.float64(), [5e-324, None, None, None]),
    "x\ny": (pa.float64(), [float("nan"), float("inf"), float("-inf"), None]),
    "quote\"'d": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.10"), None, Decimal(7)]),
    "metadata": (pa.decimal128(38, 10), [Decimal("1" * 28 + ".5"), Decimal("-1e-10"), None, None]),
    "segment": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None,
                dt.date(1969, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [dt.datetime(1600, 2, 29, 23, 59, 59, 1, tzinfo=UTC), None,
           dt.datetime(2026, 10, 25, 0, 30, tzinfo=UTC), None]),
    "local": (pa.timestamp("us"), [dt.datetime(2026, 3, 29, 2, 30), None, None,
              dt.datetime(1, 1, 1)]),
    "bytes": (pa.binary(), [b"", b"\0\xff", None, b"abc"]),
    "list": (pa.list_(pa.int64()), [[], [1, None], None, [1 << 62]]),
    "struct": (pa.struct({"a b": pa.string(), "_weir_seq": pa.int64()}),
               [{"a b": "x", "_weir_seq": None}, None, {"a b": None, "_weir_seq": None},
                {"a b": "", "_weir_seq": 1}]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], None, [], [("ä b", 0)]]),
}  # fmt: skip
NESTED = {"list", "struct", "map", "bytes"}
KEYS = ["a", "b", "ä", "c d"]
# What the doors that are files of texts, or another library's tables, can't say.
LACKS = {
    "csv": NESTED, "csv without spark": NESTED, "json": {"bytes"}, "json without spark": {"bytes"},
    "polars": {"map"}, "dicts": {"map"},
}  # fmt: skip


def table_of(columns: dict[str, tuple[pa.DataType, list[Any]]], keys: list[Any]) -> pa.Table:
    found = {name: pa.array(values, kind) for name, (kind, values) in columns.items()}
    return pa.table({"k": pa.array(keys, pa.string()), **found})


class World:
    """An installation and the doors to it. Each takes a stream and a table of rows."""

    def __init__(self, weir: Installation, folder: Path) -> None:
        self.weir, self.folder = weir, folder
        self.store = StreamStore(
            weir.settings, weir.database, "test", weir.said.append, lambda: weir.spark
        )
        self.config = write_config(weir.settings)
        register(weir.spark)

    def frame(self, table: pa.Table) -> Any:
        path = self.folder / f"{uuid.uuid4()}.parquet"
        pq.write_table(table, path)
        return self.weir.spark.read.parquet(str(path)).coalesce(1)

    def file(self, table: pa.Table, format_: str) -> str:
        name = f"{uuid.uuid4()}.{format_}"
        path = Path(self.weir.input) / name
        if format_ == "parquet":
            pq.write_table(table, path)
        elif format_ == "csv":
            with path.open("w", newline="") as file:
                cells = [[_cell(v) for v in row.values()] for row in table.to_pylist()]
                for line in [list(map(_cell, table.column_names)), *cells]:
                    file.write(",".join(line) + "\n")
        else:
            path.write_text("".join(_json(row) + "\n" for row in _dicts(table)))
        return name

    def ingested(self, stream: StreamName, table: pa.Table, format_: Any, engine: Any) -> None:
        options: dict[str, Any] = {"null_value": "NULL"} if format_ == "csv" else {}
        self.store.ingest(
            str(stream), [self.file(table, format_)], format=format_, engine=engine, **options
        )

    def saved(self, stream: StreamName, table: pa.Table) -> None:
        options = {"config": str(self.config), "writerId": "w", "batchId": str(uuid.uuid4())}
        frame = self.frame(table)
        frame.write.format("weir").mode("append").options(**options).save(str(stream))

    def streamed(self, stream: StreamName, table: pa.Table) -> None:
        folder = self.folder / str(uuid.uuid4())
        (folder / "in").mkdir(parents=True)
        pq.write_table(table, folder / "in" / "1.parquet")
        source = self.weir.spark.readStream.schema(self.frame(table).schema)
        options = {"config": str(self.config), "writerId": str(uuid.uuid4()),
                   "checkpointLocation": str(folder / "check")}  # fmt: skip
        write = source.parquet(str(folder / "in")).writeStream.format("weir").options(**options)
        running = write.trigger(availableNow=True).start(str(stream))
        try:
            running.awaitTermination()
        finally:
            running.stop()

    def consumed(self, stream: StreamName, table: pa.Table, engine: str) -> None:
        source = self.weir.create(f"s/{uuid.uuid4().hex}", segments=1, on_missing_key="spread")
        self.store.append(str(source), [{"k": "x"}])
        group = self.weir.group(source, name=f"g{uuid.uuid4().hex}")
        opened = programs.open(settings=self.weir.settings, spark=self.weir.spark)
        with opened as store, store.reader(group, engine=engine) as reader:
            for batch in reader:
                rows = self.frame(table) if engine == "spark" else table
                batch.commit({f"stream:{stream}": rows})


def _text(value: Any) -> Any:
    """What a person writes for a value in a file."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value) if isinstance(value, dt.date | Decimal) else value


def _json(row: dict[str, Any]) -> str:
    def shown(value: Any) -> Any:
        return f"#{value}#" if isinstance(value, Decimal) else _text(value)

    return re.sub('"#(.*?)#"', r"\1", json.dumps(row, default=shown))  # decimals are numbers


def _cell(value: Any) -> str:
    shown = _text(value)
    return "NULL" if shown is None else '"' + str(shown).replace('"', '""') + '"'


def _dicts(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: dict(v) if name == "map" and v is not None else v for name, v in row.items()}
            for row in table.to_pylist()]  # fmt: skip


Door = Callable[[World, StreamName, pa.Table], Any]
DOORS: dict[str, Door] = {
    "arrow": lambda w, s, t: w.store.append(str(s), t),
    "dicts": lambda w, s, t: w.store.append(str(s), _dicts(t)),
    "pandas": lambda w, s, t: w.store.append(str(s), t.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": lambda w, s, t: w.store.append(str(s), pl.from_arrow(t)),
    "frame": lambda w, s, t: w.weir.append(s, w.frame(t)),
    "parquet": lambda w, s, t: w.ingested(s, t, "parquet", "spark"),
    "parquet without spark": lambda w, s, t: w.ingested(s, t, "parquet", "pyarrow"),
    "csv": lambda w, s, t: w.ingested(s, t, "csv", "spark"),
    "csv without spark": lambda w, s, t: w.ingested(s, t, "csv", "pyarrow"),
    "json": lambda w, s, t: w.ingested(s, t, "json", "spark"),
    "json without spark": lambda w, s, t: w.ingested(s, t, "json", "pyarrow"),
    "format": World.saved,
    "streaming": World.streamed,
    "output": lambda w, s, t: w.consumed(s, t, "spark"),
    "output without spark": lambda w, s, t: w.consumed(s, t, "pyarrow"),
}  # fmt: skip


@pytest.fixture
def world(weir: Installation, tmp_path: Path) -> World:
    return World(weir, tmp_path)


def created(world: World, name: str, table: pa.Table, **options: Any) -> StreamName:
    return world.weir.create(
        f"s/{name.replace(' ', '-')}", segments=1, fields=from_arrow(table.schema), **options
    )


def facts(store: StreamStore, stream: StreamName | str) -> tuple[Any, int]:
    """The events in the order of their ranks, and the sum of the hashes of their rows."""
    rows = store.read(str(stream), order="stream")
    names = [name for name in rows.column_names if not name.startswith("_")]
    digests_of = text(
        """SELECT clock, digest FROM time_index
        WHERE stream_id = (SELECT s.stream_id FROM stream s WHERE s.stream_name = :s)"""
    )
    found = store.database.transaction(lambda c: c.execute(digests_of, {"s": str(stream)}).all())
    digests = sum(sum_of_rows(int(one.digest), int(one.clock)) for one in found) % (1 << 64)
    return repr(rows.select(sorted(names)).to_pylist()), digests


def test_every_door_makes_the_same_events_and_digests_of_the_same_values(world: World) -> None:
    wrong, wanted = {}, dict[frozenset[str], Any]()
    for door, put in DOORS.items():
        lacks = frozenset(LACKS.get(door, set()))
        table = table_of({n: v for n, v in VALUES.items() if n not in lacks}, KEYS)
        if lacks not in wanted:
            stream = created(world, f"wanted{len(wanted)}", table)
            world.store.append(str(stream), table)
            wanted[lacks] = facts(world.store, stream)
        stream = created(world, door, table)
        try:
            put(world, stream, table)
        except Exception as error:
            wrong[door] = f"{type(error).__name__}: {str(error)[:600]}"
            continue
        if (found := facts(world.store, stream)) != wanted[lacks]:
            wrong[door] = f"{found}\ninstead of\n{wanted[lacks]}"
    assert not wrong, "\n".join(f"{door}: {what}" for door, what in wrong.items())


# Of each column the type that it has been widened to, the type of what comes, and its values.
NARROWER: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "tiny": ("BIGINT", pa.int8(), [-128, None]),
    "whole": ("DECIMAL(12,2)", pa.int32(), [-(1 << 31), None]),
    "big": ("DECIMAL(38,18)", pa.int64(), [(1 << 63) - 1, None]),
    "single": ("DOUBLE", pa.float32(), [0.5, None]),
    "money": ("DECIMAL(30,5)", pa.decimal128(5, 2), [Decimal("1.50"), None]),
    "day": ("TIMESTAMP_NTZ", pa.date32(), [dt.date(2024, 2, 29), None]),
    "list": ("ARRAY<DECIMAL(22,2)>", pa.list_(pa.int64()), [[1, None], None]),
    "struct": ("STRUCT<x: TIMESTAMP_NTZ>", pa.struct({"x": pa.date32()}),
               [{"x": dt.date(2024, 2, 29)}, None]),
    "map": ("MAP<STRING, DOUBLE>", pa.map_(pa.string(), pa.float32()), [[("a", 0.5)], None]),
}  # fmt: skip


def columns_of(store: StreamStore, stream: StreamName) -> pa.Schema:
    empty = store.read(str(stream))
    return empty.select([name for name in empty.column_names if name[0] != "_"]).schema


@pytest.mark.release
def test_every_door_takes_values_of_the_types_from_before_a_widening(world: World) -> None:
    wrong, wanted = {}, dict[frozenset[str], Any]()
    for door, put in DOORS.items():
        lacks = frozenset(LACKS.get(door, set()))
        given = {n: one for n, one in NARROWER.items() if n not in lacks}
        table = table_of({name: one[1:] for name, one in given.items()}, ["a", "b"])
        widen = ", ".join(f"{name} {one[0]}" for name, one in given.items())
        if lacks not in wanted:
            stream = created(world, f"wide{len(wanted)}", table)
            world.store.update_stream(str(stream), widen_columns=widen)
            world.store.append(str(stream), table.cast(columns_of(world.store, stream)))
            wanted[lacks] = facts(world.store, stream)
        stream = created(world, door, table)
        world.store.update_stream(str(stream), widen_columns=widen)
        try:
            put(world, stream, table)
        except Exception as error:
            wrong[door] = f"{type(error).__name__}: {str(error)[:600]}"
            continue
        if (found := facts(world.store, stream)) != wanted[lacks]:
            wrong[door] = f"{found}\ninstead of\n{wanted[lacks]}"
    assert not wrong, "\n".join(f"{door}: {what}" for door, what in wrong.items())


TEXTS = ("csv", "csv without spark", "json", "json without spark")
# Keys, columns that are declared as whole numbers, and the code: that of files of texts, if it is
# another one, as they have no types.
BAD: dict[str, tuple[list[Any], dict[str, tuple[pa.DataType, list[Any]]], str, str]] = {
    "no key": (["a", None], {}, "bad_rows", ""),
    "a long key": (["a", "x" * 20_000], {}, "bad_rows", ""),
    "a key with NUL": (["a", "b\0"], {}, "bad_rows", "file_invalid bad_rows"),
    "too large": (["a", "b"], {"n": (pa.int64(), [1, 1 << 40])}, "column_type_differs", "bad_rows"),
    "a new column": (["a", "b"], {"n": (pa.int32(), [1, 2]), "m": (pa.int32(), [1, 2])},
                     "column_unknown", ""),
    "a text": (["a", "b"], {"n": (pa.string(), ["1", "x"])}, "column_type_differs", "bad_rows"),
    "an erased key": (["a", "gone"], {}, "key_erased", ""),
}  # fmt: skip


_ERASED = """SELECT stream_id, note_erased_keys(stream_id, ARRAY['gone']) FROM stream
    WHERE stream_name = :name"""


@pytest.mark.parametrize("bad", only("too large", "an erased key", of=BAD))
def test_every_door_refuses_the_same_rows_with_the_same_code(world: World, bad: str) -> None:
    keys, columns, code, of_texts = BAD[bad]
    table = table_of(columns, keys)
    declared = table_of({"n": (pa.int32(), [1, 2])} if columns else {}, ["a", "b"])
    wrong = {}
    for door, put in DOORS.items():
        stream = created(world, door, declared, refuse_erased=True)
        [(stream_id, _)] = world.weir.query(_ERASED, name=str(stream))
        codes = (of_texts if door in TEXTS and of_texts else code).split()
        try:
            put(world, stream, table)
            wrong[door] = "taken"
        except Exception as error:  # of a thread of Spark's it is one of Spark's, with the sentence
            if not any(f"[{one}]" in str(error) for one in codes):
                wrong[door] = f"{type(error).__name__}: {str(error)[:400]}"
        assert world.weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0, door
        folder = Path(world.weir.settings.warehouse, str(stream_id))
        assert code != "key_erased" or not list(folder.rglob("*.parquet")), "what is erased is gone"
    assert wrong == {}
