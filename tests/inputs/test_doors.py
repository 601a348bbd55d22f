"""The same value is taken, or refused with the same code, in a table of pyarrow and in a Parquet
file, of which the kernel reads both, here and in tasks of Spark."""

import datetime as dt
import re
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.inputs.conftest import Files
from tests.raises import raises
from weir.model.names import LONGEST_KEY, StreamName
from weir.programs.opening import shared

DOORS = ("parquet", "arrow")
TAKEN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, None]), "u8": (pa.uint8(), [255, None]),
    "u16": (pa.uint16(), [65535, 0]), "u32": (pa.uint32(), [2**32 - 1, None]),
    "u64": (pa.uint64(), [2**64 - 1, 0]), "f": (pa.float32(), [0.1, float("inf")]),
    "d": (pa.decimal128(38, 3), [Decimal("1.250"), None]),
    "d256": (pa.decimal256(38, 3), [Decimal("-1.250"), None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "s": (pa.timestamp("s"), [dt.datetime(1600, 1, 1), None]),
    "ms": (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
    "ns": (pa.timestamp("ns"), [dt.datetime(2024, 1, 1, 1, 2, 3, 456789), None]),
    "large": (pa.large_string(), ["x" * 100, None]), "view": (pa.string_view(), ["long" * 9, ""]),
    "code": (pa.dictionary(pa.int8(), pa.string()), ["a", None]),
    "raw": (pa.binary(2), [b"\0\xff", None]),
    "list": (pa.list_(pa.float64(), 2), [[1.5, None], None]),
    "names": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], None]),
    "deep": (pa.list_(pa.struct({"a.b": pa.list_(pa.date32())})), [[{"a.b": [None]}, None], []]),
    "none": (pa.null(), [None, None]),
}  # fmt: skip
REFUSED: dict[str, tuple[pa.DataType, Any, str]] = {
    "time": (pa.time64("us"), dt.time(1), "column_type_unsupported"),
    "half": (pa.float16(), None, "column_type_unsupported"),
    "digits": (pa.decimal256(39, 0), Decimal(1), "column_type_unsupported"),
    "twins": (pa.struct({"a": pa.int8(), "A": pa.int8()}), {"a": 1, "A": 2}, "columns_invalid"),
    "deep twins": (pa.list_(pa.struct({"a": pa.int8(), "A": pa.int8()})), [], "columns_invalid"),
    "_weir_x": (pa.int8(), 1, "columns_invalid"),
    "finer": (pa.timestamp("ns"), 1, "bad_rows"),
    "part": (pa.list_(pa.null()), [None], "bad_rows"),
}  # fmt: skip
BYTES = b"Z\xfcrich"  # of an older encoding
# Texts that are not UTF-8.
WRONG_TEXTS: dict[str, tuple[pa.DataType, Any, pa.DataType]] = {
    "text": (pa.binary(), BYTES, pa.string()),
    "list": (pa.list_(pa.binary()), ["a", BYTES], pa.list_(pa.string())),
    "key": (pa.map_(pa.binary(), pa.int8()), [(BYTES, 1)], pa.map_(pa.string(), pa.int8())),
    "value": (pa.map_(pa.int8(), pa.binary()), [(1, BYTES)], pa.map_(pa.int8(), pa.string())),
    "part": (pa.struct({"a": pa.binary()}), {"a": BYTES}, pa.struct({"a": pa.string()})),
}  # fmt: skip
LONGEST = "\u00e4" * (LONGEST_KEY // 2)


def put(files: Files, door: str, stream: StreamName, table: pa.Table) -> None:
    """Append a table through a door."""
    name = str(uuid.uuid4())
    if door == "parquet":
        files.ingest(stream, files.put(f"{name}.parquet", table))
    else:
        shared(files.settings).append(str(stream), table, writer_id="w", batch_id=name)


def test_what_one_door_takes_all_take_and_the_values_come_out(files: Files) -> None:
    columns = {name: pa.array(values, kind) for name, (kind, values) in TAKEN.items()}
    table = pa.table({"k": ["a", "b"], **columns})
    found = []
    for door in DOORS:
        stream = files.create(f"s/{door}")
        put(files, door, stream, table)
        found.append(files.table(stream))
    assert found[0].equals(found[1])
    assert set(TAKEN) - set(found[0].column_names) == {"none"}, "it has no type yet"
    for name in found[0].column_names:
        wanted = table[name].cast(found[0].schema.field(name).type).to_pylist()
        assert repr(found[0][name].to_pylist()) == repr(wanted), name


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_door_refuses_all_refuse_with_the_same_code(files: Files, name: str) -> None:
    kind, value, code = REFUSED[name]
    stream = files.create()
    for door in DOORS:
        with raises(code):
            put(files, door, stream, pa.table({"k": ["a"], name: pa.array([value], kind)}))
    assert files.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.mark.parametrize("door", DOORS)
def test_texts_that_are_not_utf_8_are_set_aside_or_refused_wherever_they_are(
    files: Files, door: str
) -> None:
    columns = {"k": pa.array(["a"] * len(WRONG_TEXTS) + ["good"])}
    strict, kept = files.create(), files.create("s/kept", on_bad_rows="quarantine")
    for i, (name, (kind, value, said)) in enumerate(WRONG_TEXTS.items()):
        values = [value if n == i else None for n in range(len(columns["k"]))]
        columns[name] = pa.array(values, kind).view(said)
        with raises(f"bad_rows {name!r}"):
            put(files, door, strict, pa.table({"k": ["a"], name: columns[name].slice(i, 1)}))
    put(files, door, kept, pa.table(columns))
    assert [key for key, *_ in files.events(kept)] == ["good"]
    rejected = files.rejected(kept, "column", "text")
    assert [column for column, _ in rejected] == list(WRONG_TEXTS)
    assert all(re.search(r"Z\\+xfcrich", text) for _, text in rejected), rejected


@pytest.mark.parametrize("door", DOORS)
def test_keys_that_nothing_could_name_later_are_refused_or_set_aside(
    files: Files, door: str
) -> None:
    keys = [LONGEST, LONGEST + "x", "a\0b", "", "y" * 1_000_000]
    rows = pa.table({"k": keys, "n": range(len(keys))})
    strict, kept = files.create(), files.create("s/kept", on_bad_rows="quarantine")
    with raises("bad_rows 3 of the rows do not fit"):
        put(files, door, strict, rows)
    put(files, door, kept, rows)
    assert files.table(kept)["n"].to_pylist() == [0, 3]
    rejected = files.rejected(kept, "column", "type", "row")
    assert [(column, "NUL" in kind) for column, kind, _ in rejected] == [("k", True)] * 3
    assert [re.findall(r'"n":(\d)', row) for *_, row in rejected] == [["1"], ["2"], ["4"]]


@pytest.mark.parametrize("door", DOORS)
def test_a_column_without_values_gets_its_type_from_later_rows(files: Files, door: str) -> None:
    stream = files.create()
    none = pa.table({"k": ["a"], "x": pa.nulls(1), "l": pa.array([None], pa.list_(pa.null()))})
    put(files, door, stream, none)
    assert files.table(stream).column_names == ["k"]
    put(files, door, stream, pa.table({"k": ["b"], "x": ["text"], "l": [["q"]]}))
    put(files, door, stream, none)
    empty = ("a", None, None)
    assert files.events(stream) == [empty, ("b", "text", ["q"]), empty]
