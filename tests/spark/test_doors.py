"""The same value is taken, or refused with the same code, by all doors: Parquet, DataFrames and
pyarrow tables. What a file says beside its columns is never followed."""

import datetime as dt
import os
import re
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import random_for
from tests.inputs.test_parquet_footer import mutated
from tests.raises import raises
from tests.released import only
from tests.spark.installation import PLACE, Installation
from weir.errors import WeirError
from weir.inputs.unreadable import UnreadableFile, unreadable_now
from weir.model.names import StreamName
from weir.programs.opening import shared
from weir.spark.failures.causes import raising_own
from weir.spark.failures.unreadable import naming_files

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
    "twins": (pa.struct({"a": pa.int8(), "A": pa.int8()}), {"a": 1, "A": 2}, "column_named_twice"),
    "deep twins": (pa.list_(pa.struct({"a": pa.int8(), "A": pa.int8()})), [], "column_named_twice"),
    "_weir_x": (pa.int8(), 1, "column_name_reserved"),
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


def put(weir: Installation, door: str, stream: StreamName, table: pa.Table) -> None:
    """Append a table through a door."""
    if door == "parquet":
        name = f"{uuid.uuid4()}.parquet"
        pq.write_table(table, Path(weir.input) / name)
        weir.ingest(stream, [name])
    elif door == "arrow":
        shared(weir.settings).append(str(stream), table, writer_id="w", batch_id=str(uuid.uuid4()))
    else:
        weir.append(stream, weir.spark.createDataFrame(table))


def rows(weir: Installation, stream: StreamName) -> list[dict[str, Any]]:
    """The events in write order, as Spark reads them."""
    found = weir.frame(stream, "stream").drop(*PLACE).collect()
    return [one.asDict(recursive=True) for one in found]


def test_what_one_door_takes_all_take_and_the_values_come_out(weir: Installation) -> None:
    columns = {name: pa.array(values, kind) for name, (kind, values) in TAKEN.items()}
    table = pa.table({"k": ["a", "b"], **columns})
    streams = []
    for door in ("parquet", "arrow"):
        streams.append(weir.create(f"s/{door}", segments=1))
        put(weir, door, streams[-1], table)
    first, second = (rows(weir, stream) for stream in streams)
    assert first == second
    assert [dict(weir.frame(stream).dtypes) for stream in streams[:1]] == [
        dict(weir.frame(stream).dtypes) for stream in streams[1:]
    ]
    for i, row in enumerate(first):
        for name, (kind, values) in TAKEN.items():
            if name == "none":
                assert name not in row, "it has no type yet"
                continue
            wanted = values[i]
            if name == "names" and wanted is not None:
                wanted = dict(wanted)
            if pa.types.is_floating(kind) and wanted is not None:
                wanted = pa.scalar(wanted, kind).as_py()
            if kind == pa.timestamp("ms", "UTC") and wanted is not None:
                wanted = wanted.replace(tzinfo=None)
            assert row[name] == wanted, name


@pytest.mark.parametrize("name", only("twins", of=REFUSED))
def test_what_one_door_refuses_all_refuse_with_the_same_code(weir: Installation, name: str) -> None:
    kind, value, code = REFUSED[name]
    table = pa.table({"k": ["a"], name: pa.array([value], kind)})
    stream = weir.create()
    for door in ("parquet", "arrow"):
        with raises(code):
            put(weir, door, stream, table)
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.mark.release
def test_texts_that_are_not_utf_8_are_set_aside_or_refused_wherever_they_are(
    weir: Installation,
) -> None:
    columns = {"k": pa.array(["a"] * len(WRONG_TEXTS) + ["good"])}
    strict = weir.create()
    for i, (name, (kind, value, said)) in enumerate(WRONG_TEXTS.items()):
        values = [value if n == i else None for n in range(len(columns["k"]))]
        columns[name] = pa.array(values, kind).view(said)
        with raises(f"bad_rows {name!r}"):
            one = pa.table({"k": ["a"], name: columns[name].slice(i, 1)})
            put(weir, "arrow", strict, one)
    for door in ("parquet", "frame"):
        stream = weir.create(f"s/{door}", on_bad_rows="quarantine")
        put(weir, door, stream, pa.table(columns))
        assert [one["k"] for one in rows(weir, stream)] == ["good"]
        found = [(one["column"], one["text"]) for one in rows(weir, stream.rejected)]
        assert [column for column, _ in found] == list(WRONG_TEXTS)
        assert all(re.search(r"Z\\+xfcrich", text) for _, text in found), found


@pytest.mark.release
def test_frames_of_types_that_streams_do_not_have_are_refused(weir: Installation) -> None:
    stream = weir.create()
    for value, code in {
        "INTERVAL '1' DAY": "column_type_unsupported",
        "'a' COLLATE unicode_ci": "column_type_unsupported",
        "named_struct('a', 1, 'A', 2)": "column_named_twice",
        "array(named_struct('a', 1, 'a', 2))": "column_named_twice",
    }.items():
        with raises(f"{code} 'x'"):
            weir.append(stream, weir.spark.sql(f"SELECT 'a' AS k, {value} AS x"))


@pytest.mark.release
@pytest.mark.parametrize("door", ["parquet", "frame", "arrow"])
def test_a_column_without_values_gets_its_type_from_later_rows(
    weir: Installation, door: str
) -> None:
    stream = weir.create(segments=1)
    none = pa.table({"k": ["a"], "x": pa.nulls(1), "l": pa.array([None], pa.list_(pa.null()))})
    some = pa.table({"k": ["b"], "x": ["text"], "l": [["q"]]})
    put(weir, door, stream, none)
    assert weir.frame(stream).columns == ["k", *PLACE]
    put(weir, door, stream, some)
    put(weir, door, stream, none)
    empty = {"k": "a", "x": None, "l": None}
    assert rows(weir, stream) == [empty, {"k": "b", "x": "text", "l": ["q"]}, empty]


@pytest.mark.release
def test_files_meet_in_the_type_that_holds_the_values_of_all(weir: Installation) -> None:
    stream = weir.create(segments=1)
    narrow = {"n": pa.array([1, None], pa.int32()), "f": pa.array([1.5, None], pa.float32()),
              "d": pa.array([1, None], pa.decimal128(5, 2)), "x": pa.nulls(2)}  # fmt: skip
    wide = {"n": [1 << 40], "f": [2.5], "d": pa.array([Decimal("2.125")], pa.decimal128(20, 3)),
            "x": [["a"]]}  # fmt: skip
    pq.write_table(pa.table({"k": ["a", "b"], **narrow}), f"{weir.input}/1.parquet")
    pq.write_table(pa.table({"k": ["c"], **wide}), f"{weir.input}/2.parquet")
    weir.ingest(stream, ["1.parquet", "2.parquet"])
    weir.ingest(stream, ["1.parquet"], again="once more")
    two = [{"k": "a", "n": 1, "f": 1.5, "d": Decimal(1), "x": None},
           {"k": "b", "n": None, "f": None, "d": None, "x": None}]  # fmt: skip
    third = {"k": "c", "n": 1 << 40, "f": 2.5, "d": Decimal("2.125"), "x": ["a"]}
    assert rows(weir, stream) == [*two, third, *two]


@pytest.mark.release
def test_encodings_and_types_of_other_writers_are_read(weir: Installation) -> None:
    path = Path(weir.input) / "duck.parquet"
    one = str(uuid.uuid4())
    duckdb.sql(
        f"""COPY (SELECT 'k' || i AS k, '{one}'::uuid AS u, i / 3.0::double AS d, i::float AS f,
        i::ubigint AS big, repeat('x', i::int) AS s FROM range(1000) t(i))
        TO '{path}' (FORMAT parquet, PARQUET_VERSION v2, ROW_GROUP_SIZE 500)"""
    )
    stream = weir.create(segments=1)
    weir.ingest(stream, [path.name])
    wanted = duckdb.sql(f"SELECT k, u::text AS u, d, f, big, s FROM '{path}'").fetchall()
    assert [tuple(row.values()) for row in rows(weir, stream)] == [
        (k, u, d, f, Decimal(big), s) for k, u, d, f, big, s in wanted
    ]


@pytest.mark.release
def test_a_file_names_a_module_and_a_class_in_vain(
    weir: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "handed_in.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for kind in ('"pyClass":"handed_in.X"', '"class":"handed.in.X"'):
        udt = f'{{"type":"udt",{kind},"sqlType":"long"}}'
        field = f'{{"name":"n","type":{udt},"nullable":true,"metadata":{{}}}}'
        metadata = f'{{"type":"struct","fields":[{field}]}}'
        table = pa.table({"k": ["a"], "n": [1]}).replace_schema_metadata(
            {"org.apache.spark.sql.parquet.row.metadata": metadata}
        )
        pq.write_table(table, f"{weir.input}/x.parquet")
        stream = weir.create(f"s/{len(kind)}", segments=1)
        weir.ingest(stream, ["x.parquet"])
        assert rows(weir, stream) == [{"k": "a", "n": 1}]
    assert "handed_in" not in sys.modules


@pytest.mark.release
def test_damage_that_a_task_finds_is_told_with_its_file(weir: Installation) -> None:
    path = Path(weir.input) / "x.parquet"
    table = pa.table({"k": ["a"] * 200, "n": [*range(100)] * 2})
    pq.write_table(table, path, compression="none")
    pq.write_table(table, Path(weir.input) / "whole.parquet")
    column = pq.read_metadata(path).row_group(0).column(1)
    start = min(column.dictionary_page_offset, column.data_page_offset)
    end = start + column.total_compressed_size
    data = path.read_bytes()
    path.write_bytes(data[: end - 8] + b"\xff" * 8 + data[end:])
    stream = weir.create("s/values", segments=1)
    with raises("file_damaged x.parquet"):
        weir.ingest(stream, ["whole.parquet", "x.parquet"])


@pytest.mark.release
def test_a_file_at_which_pyarrow_ends_its_process_is_named(weir: Installation) -> None:
    path = Path(weir.input) / "x.parquet"
    pq.write_table(pa.table({"k": ["a"] * 200}), path, compression="none")
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(100) + data[104:])

    def ends(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os._exit(1)

    frame = weir.spark.range(1).mapInArrow(ends, "id long")
    with raises("file_damaged 'x.parquet'"), naming_files(weir.input, [path.name], "parquet"):
        frame.collect()


@pytest.mark.release
def test_a_task_that_finds_a_file_unreadable_says_that_it_may_be_tried_again(
    weir: Installation,
) -> None:
    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise unreadable_now("x.parquet", OSError("the disk is away"))

    frame = weir.spark.range(1).mapInArrow(fails, "id long")
    with raises("file_unreadable 'x.parquet'") as failed, raising_own():
        frame.collect()
    assert isinstance(failed.value, UnreadableFile)


def fuzz(weir: Installation, seed: str, count: int) -> None:
    """Ingest files with changed footers: each is read, or refused by a final sentence."""
    chance = random_for(seed)
    path = Path(weir.input) / "x.parquet"
    pq.write_table(pa.table({"k": ["a", "b"] * 50, "n": range(100), "l": [[1]] * 100}), path)
    data = path.read_bytes()
    for number in range(count):
        path.write_bytes(mutated(data, chance))
        stream = weir.create(f"s/{seed}{number}", segments=1)
        try:
            weir.ingest(stream, [path.name])
        except WeirError as error:
            wrong = str(error) if error.retryable or "\n" in error.sentence else ""
        else:
            wrong = ""
        assert not wrong, f"{number} of {seed}"
    assert weir.spark.range(3).count() == 3, "Spark is alive"


@pytest.mark.release
@pytest.mark.timeout(3600)
def test_whatever_footer_a_file_has_it_is_read_or_refused_in_a_sentence(weir: Installation) -> None:
    fuzz(weir, "footers", 100)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_an_hour_of_changed_footers_ends_in_sentences(weir: Installation) -> None:
    fuzz(weir, "soak", 3000)
