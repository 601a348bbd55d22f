"""Rows of Parquet files as the kernel reads them: each value, or a mark, or a sentence."""

import datetime as dt
import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import cases, random_for
from tests.inputs.test_parquet_footer import mutated
from tests.raises import raises
from weir.controller.transactions import InputFile
from weir.errors import WeirError
from weir.inputs.files import ROW_BITS, Inputs
from weir.inputs.parquet_rows import ParquetValues, parquet_values
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_options import TextOptions
from weir.model.schema import SEQ, show

WHOLE = 1 << 40  # bytes: a file is one piece


def values(folder: Path, *names: str, most: int = WHOLE) -> ParquetValues:
    files = tuple(InputFile(name, 1) for name in names)
    return parquet_values(Inputs(str(folder), files, "parquet", TextOptions(), ()), most)


def read(folder: Path, *names: str, most: int = WHOLE) -> pa.Table:
    """All rows of files in a folder."""
    found = values(folder, *names, most=most)
    return pa.concat_tables(table for piece in found.pieces for table in found.tables(piece))


def column(folder: Path, name: str = "c") -> list[Any]:
    table = read(folder, "x.parquet")
    assert table[MALFORMED].null_count == table.num_rows
    return list(table[name].to_pylist())


def written(
    folder: Path, table: pa.Table | dict[str, Any], name: str = "x.parquet", **how: Any
) -> None:
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), folder / name, **how)


UTC = dt.UTC
KINDS: list[tuple[pa.DataType, str, list[Any]]] = [
    (pa.uint8(), "short", [255]), (pa.uint32(), "long", [2**32 - 1]),
    (pa.uint64(), "decimal(20,0)", [Decimal(2**64 - 1)]), (pa.float32(), "float", [1.5]),
    (pa.decimal128(38, 3), "decimal(38,3)", [Decimal("1.250")]),
    (pa.decimal256(20, 3), "decimal(20,3)", [Decimal("-1.250")]),
    (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (pa.timestamp("s"), "timestamp_ntz", [dt.datetime(1600, 1, 1)]),
    (pa.timestamp("ms", "Asia/Tokyo"), "timestamp", [dt.datetime(2024, 1, 1, tzinfo=UTC)]),
    (pa.timestamp("ns"), "timestamp_ntz", [dt.datetime(2024, 1, 1, 1, 2, 3, 456789)]),
    (pa.large_string(), "string", ["x" * 100]), (pa.string_view(), "string", ["long" * 9, ""]),
    (pa.dictionary(pa.int8(), pa.string()), "string", ["a"]), (pa.binary(2), "binary", [b"\0\xff"]),
    (pa.json_(), "string", ["{}"]), (pa.duration("us"), "long", []),
    (pa.list_(pa.float64(), 2), "array<double>", [[1.5, None]]),
    (pa.list_(pa.uint64()), "array<decimal(20,0)>", [[Decimal(7)], []]),
    (pa.map_(pa.string(), pa.uint16()), "map<string, integer>", [[("a", 1), ("b", None)], []]),
    (pa.list_(pa.struct({"a.b": pa.list_(pa.date32())})), "array<struct<a.b: array<date>>>",
     [[{"a.b": [None]}, None], []]),
    (pa.struct({"s": pa.struct({"n": pa.int8()})}), "struct<s: struct<n: byte>>", [{"s": None}]),
    (pa.null(), "void", []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "said", "given"), KINDS)
def test_every_type_is_read_in_the_type_in_which_it_is_kept(
    tmp_path: Path, kind: pa.DataType, said: str, given: list[Any]
) -> None:
    rows = pa.array([*given, None] * 3, kind)
    written(tmp_path, {"c": rows}, row_group_size=2)
    assert [show(one["type"]) for one in values(tmp_path, "x.parquet").fields] == [said]
    assert column(tmp_path) == [*given, None] * 3


def test_uuids_become_texts(tmp_path: Path) -> None:
    given = [uuid.UUID(int=7 << 100), None, uuid.UUID(int=(1 << 128) - 1)]
    storage = pa.array([one and one.bytes for one in given], pa.binary(16))
    written(tmp_path, {"c": pa.ExtensionArray.from_storage(pa.uuid(), storage)})
    assert column(tmp_path) == [one and str(one) for one in given]


def test_uuids_within_others_are_refused_by_name(tmp_path: Path) -> None:
    one = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16], pa.binary(16)))
    written(tmp_path, {"k": ["a"], "c": pa.ListArray.from_arrays([0, 1], one)})
    with raises("column_type_unsupported 'c' 'x.parquet' UUIDs"):
        values(tmp_path, "x.parquet")


def test_a_map_whose_keys_may_be_null_is_refused_by_name(tmp_path: Path) -> None:
    written(tmp_path, {"c": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))})
    path = tmp_path / "x.parquet"
    required, optional = (bytes([0x25, repetition]) + b"\x18\x03key" for repetition in (0, 2))
    path.write_bytes(path.read_bytes().replace(required, optional))
    with raises("column_type_unsupported 'c' 'x.parquet' map keys null"):
        values(tmp_path, "x.parquet")


def test_times_of_96_bits_are_read_in_all_years_and_places(tmp_path: Path) -> None:
    times = [dt.datetime(1, 1, 1), None, dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    kind, utc = pa.timestamp("us"), [time and time.replace(tzinfo=UTC) for time in times]
    pairs = pa.map_(pa.string(), kind)
    written(tmp_path, {
        "c": pa.array(times, kind), "l": pa.array([times, None, []], pa.list_(kind)),
        "s": pa.array([{"n": 1, "t": times[0]}, None, {"n": 2, "t": None}],
                      pa.struct({"n": pa.int8(), "t": kind})),
        "m": pa.array([[("a", times[2])], None, [("b", None)]], pairs),
    }, use_deprecated_int96_timestamps=True)  # fmt: skip
    found = read(tmp_path, "x.parquet")
    assert found[MALFORMED].null_count == 3
    assert [show(one["type"]) for one in values(tmp_path, "x.parquet").fields] == [
        "timestamp", "array<timestamp>", "struct<n: byte, t: timestamp>", "map<string, timestamp>"
    ]  # fmt: skip
    assert found["c"].to_pylist() == utc
    assert found["l"].to_pylist() == [utc, None, []]
    assert found["s"].to_pylist() == [{"n": 1, "t": utc[0]}, None, {"n": 2, "t": None}]
    assert found["m"].to_pylist() == [[("a", utc[2])], None, [("b", None)]]


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("place", ["column", "list", "map", "struct"])
def test_a_time_that_is_finer_than_a_microsecond_marks_its_row(
    tmp_path: Path, is_wide: bool, place: str
) -> None:
    kind = pa.timestamp("ns", None if is_wide else "UTC")
    given: dict[str, tuple[pa.DataType, Any]] = {
        "column": (kind, lambda n: n), "list": (pa.list_(kind), lambda n: [None, n]),
        "map": (pa.map_(pa.int8(), kind), lambda n: [(1, n)]),
        "struct": (pa.struct({"n": pa.int8(), "t": kind}), lambda n: {"n": 1, "t": n}),
    }  # fmt: skip
    of, made = given[place]
    times = pa.array([made(1000), made(1_700_000_000_000_001_001), None, made(-999)], of)
    written(tmp_path, {"k": [*"abcd"], "c": times}, use_deprecated_int96_timestamps=is_wide)
    found = read(tmp_path, "x.parquet")
    marks = found[MALFORMED].to_pylist()
    assert [mark is None for mark in marks] == [True, False, True, False]
    assert found["c"].is_valid().to_pylist() == [True, False, False, False]
    said = values(tmp_path, "x.parquet").fields[1]["type"]
    assert (marks[1]["column"], marks[1]["type"]) == ("c", show(said))
    assert json.loads(marks[3]["row"])["k"] == "d"
    if not is_wide and place == "column":
        assert "2023-11-14T22:13:20.000001001+00:00" in marks[1]["row"]


def test_files_meet_in_wider_types_and_lack_columns(tmp_path: Path) -> None:
    deep = pa.struct({"n": pa.int8(), "l": pa.list_(pa.null())})
    wide = pa.struct({"n": pa.int64(), "l": pa.list_(pa.struct({"x": pa.string()}))})
    one = {"n": pa.array([1, None], pa.int16()), "d": pa.array([1, None], pa.decimal128(5, 2)),
           "f": pa.array([1.5, None], pa.float32()), "x": pa.nulls(2), "only": ["a", "b"],
           "deep": pa.array([{"n": 1, "l": []}, None], deep),
           "t": pa.array([1000, None], pa.timestamp("ns"))}  # fmt: skip
    two = {"n": [1 << 40], "d": pa.array([Decimal("2.125")], pa.decimal128(20, 3)), "f": [2.5],
           "x": [["a"]], "deep": pa.array([{"n": 2, "l": [{"x": "y"}]}], wide),
           "t": pa.array([2], pa.timestamp("us"))}  # fmt: skip
    written(tmp_path, one, "1")
    written(tmp_path, two, "2")
    found = read(tmp_path, "1", "2", "1")
    assert found.num_rows == 5
    assert found["n"].to_pylist() == [1, None, 1 << 40, 1, None]
    assert found["d"].to_pylist()[:3] == [Decimal(1), None, Decimal("2.125")]
    assert found["f"].to_pylist()[:3] == [1.5, None, 2.5]
    assert found["x"].to_pylist()[:3] == [None, None, ["a"]]
    assert found["only"].to_pylist()[:3] == ["a", "b", None]
    assert found["deep"].to_pylist()[:3] == [
        {"n": 1, "l": []}, None, {"n": 2, "l": [{"x": "y"}]}
    ]  # fmt: skip
    assert found["t"].cast(pa.int64()).to_pylist()[:3] == [1, None, 2]


def test_pieces_have_the_same_rows_and_ranks_however_files_are_split(tmp_path: Path) -> None:
    for name, rows in (("b", 95), ("a", 0), ("c", 40)):
        written(tmp_path, {"n": pa.array(range(rows), pa.int64())}, name, row_group_size=10)
    whole = read(tmp_path, "b", "a", "c")
    assert whole[SEQ].to_pylist() == [
        *range(95),
        *(n + (2 << ROW_BITS) for n in range(40)),
    ]
    for most in (1, 200, 300):
        found = values(tmp_path, "b", "a", "c", most=most)
        assert len(found.pieces) > 3
        assert read(tmp_path, "b", "a", "c", most=most).equals(whole)


def test_what_a_writer_says_of_arrow_is_not_followed(tmp_path: Path) -> None:
    table = pa.table({"c": [1, 2], "ARROW:schema": ["a", "b"], "s": [{"ARROW:schema": 1}, None]})
    for said in ("not an Arrow schema", "ARROW:schema", "/////"):
        metadata = {"a": "ARROW:schema", "ARROW:schema": said}
        written(tmp_path, table.replace_schema_metadata(metadata), store_schema=False)
        found = read(tmp_path, "x.parquet").drop_columns([SEQ, MALFORMED])
        assert found.to_pylist() == table.to_pylist()
    days = pa.array([1, 2], pa.int64())
    written(tmp_path, {"c": days.cast(pa.duration("us"))})
    assert pq.read_table(tmp_path / "x.parquet")["c"].type == pa.duration("us"), "pyarrow does"
    assert column(tmp_path) == [1, 2]


def test_days_of_an_old_spark_mark_their_rows(tmp_path: Path) -> None:
    days = [dt.date(1582, 10, 14), dt.date(1582, 10, 15), None, dt.date(1, 1, 1)]
    table = pa.table({
        "c": pa.array(days), "t": pa.array([None, 0, None, None], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    spark = "org.apache.spark."
    for metadata, fits in (
        ({f"{spark}version": "2.4.8"}, [False, True, True, False]),
        ({f"{spark}version": "3.5.0", f"{spark}legacyDateTime": ""}, [False, True, True, False]),
        ({f"{spark}version": "3.0.1"}, [True] * 4), ({f"{spark}version": "4.1.0"}, [True] * 4),
    ):  # fmt: skip
        written(tmp_path, table.replace_schema_metadata(metadata))
        assert read(tmp_path, "x.parquet")[MALFORMED].is_null().to_pylist() == fits
    table = pa.table({"t": pa.array([dt.datetime(1899, 1, 1), dt.datetime(1900, 1, 2), None])})
    written(tmp_path, table.replace_schema_metadata({f"{spark}version": "3.0.1"}),
            use_deprecated_int96_timestamps=True)  # fmt: skip
    marks = read(tmp_path, "x.parquet")[MALFORMED].to_pylist()
    assert [mark is None for mark in marks] == [False, True, True]
    assert "Julian calendar" in marks[0]["type"]


def test_a_file_that_changed_after_it_was_looked_at_is_said(tmp_path: Path) -> None:
    written(tmp_path, {"c": [1, 2]})
    found = values(tmp_path, "x.parquet")
    written(tmp_path, {"c": [1, 2, 3]})
    for whole in (True, False):
        if not whole:
            (tmp_path / "x.parquet").write_text("PAR1 and so on")
        with raises("file_unreadable 'x.parquet' append") as failed:
            list(found.tables(found.pieces[0]))
        assert failed.value.retryable


def test_codecs_of_pyarrow_are_read_and_others_refused_by_name(tmp_path: Path) -> None:
    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        written(tmp_path, {"c": ["a"] * 99}, compression=codec)
        assert column(tmp_path) == ["a"] * 99
    path = tmp_path / "x.parquet"
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # The codec comes after the path of a column.
    place = data.index(b"\x18\x01c\x15", begin) + 4
    assert data[place] == 6 << 1, "zstd"
    path.write_bytes(data[:place] + bytes([3 << 1]) + data[place + 1 :])
    with raises("file_invalid 'x.parquet' LZO compress"):
        read(tmp_path, "x.parquet")


def test_a_row_group_with_other_rows_than_its_footer_says_is_damage(tmp_path: Path) -> None:
    written(tmp_path, {"c": pa.array(range(100), pa.int64())}, use_dictionary=False)
    path = tmp_path / "x.parquet"
    data = path.read_bytes()
    kind, other = (bytes([0x15, one, 0x15]) for one in (0x00, 0x08))  # a page of no known kind
    place = data.index(kind)
    path.write_bytes(data[:place] + other + data[place + 3 :])
    with raises("file_invalid 'x.parquet' completely") as failed:
        read(tmp_path, "x.parquet")
    assert not failed.value.retryable


def test_a_value_that_changed_in_a_page_with_a_checksum_is_damage(tmp_path: Path) -> None:
    rows = {"c": pa.array([0x1122334455667788] * 9, pa.int64())}
    for checked in (False, True):
        written(tmp_path, rows, use_dictionary=False, compression="none",
                write_page_checksum=checked, write_statistics=False)  # fmt: skip
        path = tmp_path / "x.parquet"
        data = path.read_bytes()
        path.write_bytes(data.replace(b"\x88\x77", b"\x88\x78", 1))
        if checked:
            with raises("file_invalid 'x.parquet' completely") as failed:
                read(tmp_path, "x.parquet")
            assert not failed.value.retryable
        else:
            assert column(tmp_path)[0] != rows["c"][0].as_py(), "nobody can see it"


def test_what_pyarrow_does_not_read_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: Any) -> Iterator[pa.Table]:
        raise pa.ArrowNotImplementedError("a codec of tomorrow")

    written(tmp_path, {"c": [1]})
    monkeypatch.setattr(ParquetValues, "_tables", refuses)
    with raises("file_invalid 'x.parquet' tomorrow") as failed:
        read(tmp_path, "x.parquet")
    assert not failed.value.retryable


def damaged_files(data: bytes, count: int, seed: str) -> Iterator[bytes]:
    """A file with changed bytes, in its footer or before it."""
    chance = random_for(seed)
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for number in range(count):
        if number % 2:
            yield mutated(data, chance)
            continue
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 3, 30])):
            changed[chance.randrange(4, end)] = chance.choice(
                [0, 1, 0x7F, 0xFF, chance.randrange(256)]
            )
        yield bytes(changed)


@pytest.mark.random
def test_a_damaged_file_gives_rows_or_a_sentence(tmp_path: Path) -> None:
    rows = {"k": ["a", "b"] * 50, "n": range(100), "l": [[1], None] * 50,
            "s": [{"x": 1.5, "y": [None, "z"]}, None] * 50,
            "t": pa.array([1] * 100, pa.timestamp("us"))}  # fmt: skip
    written(tmp_path, rows, row_group_size=30, use_deprecated_int96_timestamps=True)
    data = (tmp_path / "x.parquet").read_bytes()
    for number, changed in enumerate(damaged_files(data, cases(480), "damaged")):
        (tmp_path / "x.parquet").write_bytes(changed)
        wrong = ""
        try:
            found = values(tmp_path, "x.parquet")
            for piece in found.pieces:
                for table in found.tables(piece):
                    table.validate()
        except WeirError as error:
            wrong = str(error) if error.retryable or "\n" in error.sentence else ""
        assert not wrong, f"{number}: {wrong}"
