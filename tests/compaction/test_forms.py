"""Columns are copied as they are stored, whatever their types, or left where they are."""

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from weir.compaction.description import description_in, without_description
from weir.compaction.rewrite import rewrite
from weir.model.compaction import FEWEST, GROWTH, ROWS, Small, groups_of
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, SEQ

NESTED = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "byte": (pa.int8(), [-128, None, 127]),
    "short": (pa.int16(), [-32768, None, 32767]),
    "int": (pa.int32(), [-(2**31), None, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), None, 2**63 - 1]),
    "float": (pa.float32(), [float("-inf"), None, -0.0]),
    "double": (pa.float64(), [5e-324, None, 1.7976931348623157e308]),
    "boolean": (pa.bool_(), [True, None, False]),
    "string": (pa.string(), ["", None, "ä\u0000\U0001f600"]),
    "binary": (pa.binary(), [b"", None, bytes(range(256))]),
    "date": (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), None, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(1, 1, 1), None, datetime(9999, 12, 31)]),
    "small": (pa.decimal128(9, 2), [Decimal("-9999999.99"), None, Decimal("0.01")]),
    "middle": (pa.decimal128(18, 0), [Decimal(10**17), None, Decimal(-1)]),
    "large": (pa.decimal128(38, 18), [Decimal("1e-18"), None, Decimal(10) ** 19]),
    "list": (pa.list_(pa.int64()), [[], None, [1, None]]),
    "map": (pa.map_(pa.string(), NESTED), [[], None, [("k", {"a": 1, "b": [{"c": None}]})]]),
    "struct": (NESTED, [{"a": None, "b": None}, None, {"a": 1, "b": []}]),
}
# What Spark, pyarrow and older versions choose for the same types.
WAYS: dict[str, dict[str, Any]] = {
    "as pyarrow": {},
    "as Spark": {"store_decimal_as_integer": True, "store_schema": False},
    "as Spark was": {"use_deprecated_int96_timestamps": True, "store_schema": False},
    "in zstd": {"compression": "zstd", "data_page_version": "2.0"},
}
SPARK = {"org.apache.spark.version": "4.2.0", "org.apache.spark.sql.parquet.row.metadata": "{}"}


def write(
    folder: Path, number: int, table: pa.Table, notes: dict[str, str] = SPARK, **way: Any
) -> Small:
    rows = table.append_column(SEQ, pa.array(range(table.num_rows), pa.int64()))
    path = folder / f"{number}.parquet"
    with pq.ParquetWriter(path, rows.schema, **way) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(notes)
    start = number * table.num_rows
    return Small(0, start, table.num_rows, path.stat().st_size, 1, number, 100 + number, path.name)


def stored(path: Path) -> list[Any]:
    schema = pq.ParquetFile(path).schema
    columns = [schema.column(i) for i in range(len(schema))]
    return [
        (c.path, c.physical_type, str(c.logical_type), c.max_definition_level)
        for c in columns if c.path not in (CLOCK, CLOCK_BY_NUMBER)
    ]  # fmt: skip


def put_together(folder: Path, files: list[Small]) -> list[Any]:
    return rewrite(fs.LocalFileSystem(), str(folder), "new/", count(), files)


@pytest.mark.parametrize("way", WAYS)
def test_every_type_comes_out_as_it_was_stored(tmp_path: Path, way: str) -> None:
    if (
        way == "as Spark was"
    ):  # pyarrow writes times without a zone as INT96, too, and Spark did not
        columns = {k: v for k, v in COLUMNS.items() if k != "timestamp_ntz"}
    else:
        columns = COLUMNS
    table = pa.table({name: pa.array(v, kind) for name, (kind, v) in columns.items()})
    files = [write(tmp_path, i, table, **WAYS[way]) for i in range(4)]
    [new] = put_together(tmp_path, files)
    assert stored(tmp_path / new.path) == stored(tmp_path / "0.parquet")
    old, whole = (
        pq.ParquetFile(tmp_path / path, coerce_int96_timestamp_unit="us")
        for path in ("0.parquet", new.path)
    )
    found = whole.read().drop_columns([CLOCK, CLOCK_BY_NUMBER])
    assert found.schema.remove_metadata() == old.schema_arrow.remove_metadata()
    assert found.equals(pa.concat_tables([old.read()] * 4))
    assert whole.read([CLOCK])[CLOCK].to_pylist() == [100 + i for i in range(4) for _ in range(3)]
    notes = whole.metadata.metadata
    assert description_in(notes) == (0, 0, 12, 1)
    assert {k: v for k, v in without_description(notes).items() if k != b"ARROW:schema"} == {
        k.encode(): v.encode() for k, v in SPARK.items()
    }
    assert whole.metadata.row_group(0).column(0).compression.lower() == WAYS[way].get(
        "compression", "snappy"
    )
    assert (new.first_seq, new.last_seq, new.bytes) == (
        0, 2, (tmp_path / new.path).stat().st_size,
    )  # fmt: skip


def test_files_of_different_forms_are_not_put_together(tmp_path: Path) -> None:
    table = pa.table({"d": pa.array([Decimal(1)], pa.decimal128(9, 0))})
    ways = ["as pyarrow", "as pyarrow", "as Spark", "as pyarrow", "as Spark", "as Spark"]
    files = [write(tmp_path, i, table, **WAYS[way]) for i, way in enumerate(ways)]
    new = put_together(tmp_path, files)
    assert [[file.transaction_number for file in one.old] for one in new] == [[0, 1], [4, 5]]
    assert len(list(tmp_path.rglob("part-*.parquet"))) == 2, "what is not used is deleted"


@pytest.mark.parametrize(
    ("notes", "required", "together"),
    [({}, False, True), (SPARK, False, False), ({}, True, False)],
)
def test_a_column_is_filled_with_nulls_where_nothing_says_that_rows_have_it(
    tmp_path: Path, notes: dict[str, str], required: bool, together: bool
) -> None:
    n, d = pa.field("n", pa.int64()), pa.field("d", pa.decimal128(9, 2), nullable=not required)
    tables = [
        pa.table([pa.array([1, 2])], schema=pa.schema([n])),
        pa.table([pa.array([Decimal(3)], d.type), pa.array([4])], schema=pa.schema([d, n])),
    ] * 2
    files = [write(tmp_path, i, table, notes=notes) for i, table in enumerate(tables)]
    new = put_together(tmp_path, files)
    assert [len(one.old) for one in new] == ([4] if together else [])
    if together:
        found = pq.read_table(tmp_path / new[0].path)
        assert found["n"].to_pylist() == [1, 2, 4] * 2
        assert found["d"].to_pylist() == [None, None, Decimal(3)] * 2
        assert stored(tmp_path / new[0].path)[2:] == stored(tmp_path / "1.parquet")[:1]


def small(start: int, events: int, size: int, version: int = 1) -> Small:
    return Small(0, start, events, size, version, 1, 1, str(start))


def test_a_stream_that_grows_for_ever_is_seldom_written_again_and_has_few_files() -> None:
    size, each = 1 << 27, 20_000
    files: list[Small] = []
    written = appended = rows = 0
    for run in range(3_000):  # with a few appends between two runs
        for _ in range(run % 12):
            files.append(small(rows, 100, each))
            appended, rows = appended + each, rows + 100
        for group in groups_of([f for f in files if f.weight(size) < 0.5], size):
            assert len(group) >= FEWEST
            assert sum(f.weight(size) for f in group) >= GROWTH * max(f.weight(size) for f in group)
            bytes_, events = sum(f.bytes for f in group), sum(f.events for f in group)
            assert bytes_ <= size
            assert events <= ROWS
            at = files.index(group[0])
            files[at : at + len(group)] = [small(group[0].start_offset, events, bytes_)]
            written += bytes_
        assert len([f for f in files if f.weight(size) < 0.5]) <= 60
    assert written <= 4 * appended


def test_neighbours_are_of_one_segment_one_version_and_without_a_gap() -> None:
    files = [small(i * 10, 10, 100) for i in range(20)]
    assert groups_of(files, 1 << 27) == [files]
    del files[10]
    files[15] = small(160, 10, 100, version=2)
    found = groups_of(files, 1 << 27, thorough=True)
    assert [len(group) for group in found] == [10, 5, 3]
    assert groups_of(files, 1 << 27) == [files[:10]], "few are left as they are"
