"""Rows become the files of a folder: their folders by values, numbers of rows, order, types."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from weir.kernel import files
from weir.kernel.folder_files import Folder, FolderFile
from weir.kernel.schema import from_arrow


def folder_of(root: Path, rows: pa.Table, **more: Any) -> Folder:
    return replace(Folder(str(root), "out/", from_arrow(rows.schema)), **more)


def read(root: Path, written: tuple[FolderFile, ...]) -> Iterator[tuple[str, pa.Table]]:
    """The folder and the rows of each file; what was said of it is so, and it is all there is."""
    paths = {str(path.relative_to(root)) for path in root.rglob("*.parquet")}
    assert paths == {file.path for file in written}
    for file in written:
        rows = pq.ParquetFile(root / file.path).read()
        assert (file.rows, file.bytes) == (len(rows), (root / file.path).stat().st_size)
        yield file.path[len("out/") :].rpartition("/")[0], rows


@pytest.mark.parametrize("buffered", [1, 1 << 27])
def test_each_row_is_once_below_its_folder_in_its_order_whatever_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffered: int
) -> None:
    monkeypatch.setattr(files, "BUFFERED", buffered)
    monkeypatch.setattr(files, "OPEN", 2)
    names = ["a", "", None, "x/y=z%", "__HIVE_DEFAULT_PARTITION__", "ä b\n"]
    days = [date(2024, 2, 29), None]
    rows = pa.table(
        {
            "name": [names[n % 6] for n in range(1000)],
            "n": range(1000),
            "Tag ?": pa.array([days[n % 2] for n in range(1000)], pa.date32()),
        }
    )
    folder = folder_of(tmp_path, rows, partition_by=("Tag ?", "name"), file_rows=50, group_rows=20)
    found: dict[tuple[str, str], list[int]] = {}
    for below, some in read(tmp_path, folder.write(rows.to_batches(max_chunksize=64))):
        assert (some.column_names, some.num_rows <= 50) == (["n"], True)
        keys = dict(part.split("=") for part in below.split("/"))
        assert [*keys] == ["Tag %3F", "name"]
        found.setdefault((keys["Tag %3F"], unquote(keys["name"])), []).extend(some["n"].to_pylist())
    null = "__HIVE_DEFAULT_PARTITION__"
    wanted: dict[tuple[str, str], list[int]] = {}
    for n in range(1000):
        key = (str(days[n % 2] or null), names[n % 6] or null)
        wanted.setdefault(key, []).append(n)
    assert {key: sorted(some) for key, some in found.items()} == wanted
    if buffered > 1:
        assert found == wanted


def test_a_task_of_a_store_writes_one_file_that_says_its_hashes(tmp_path: Path) -> None:
    hashes = [5, -3, 900, 7] * 25
    rows = pa.table({"_weir_hash": hashes, "x": [1.0, float("nan")] * 50, "t": ["a"] * 100})
    folder = folder_of(
        tmp_path, rows, compression="zstd", file_rows=None, group_rows=30, hashes="_weir_hash"
    )
    assert folder.write([]) == ()
    [file] = folder.write(pa.RecordBatch.from_pydict({name: rows[name].slice(a, 7).combine_chunks()
                          for name in rows.column_names}) for a in range(0, 100, 7))  # fmt: skip
    assert (file.rows, file.low, file.high) == (100, -3, 900)
    [(_, found)] = read(tmp_path, (file,))
    assert found["_weir_hash"].to_pylist() == hashes
    footer = pq.read_metadata(tmp_path / file.path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    assert max(group.num_rows for group in groups) <= 30
    assert {group.column(0).has_dictionary_page for group in groups} == {False}
    assert {group.column(2).has_dictionary_page for group in groups} == {True}
    assert {group.column(i).compression for group in groups for i in range(3)} == {"ZSTD"}
    assert not any(group.column(1).is_stats_set for group in groups)


def test_engines_find_the_types_and_values_that_were_written(tmp_path: Path) -> None:
    kinds: dict[str, tuple[pa.DataType, list[Any]]] = {
        "short": (pa.int16(), [-(2**15), None]),
        "money": (pa.decimal128(9, 2), [Decimal("-9999999.99"), None]),
        "large": (pa.decimal128(18, 3), [Decimal("1.001"), None]),
        "huge": (pa.decimal128(38, 10), [Decimal(10) ** 27, None]),
        "at": (pa.timestamp("us", "UTC"), [1, None]),
        "there": (pa.timestamp("us"), [-1, None]),
        "day": (pa.date32(), [date(1, 1, 1), None]),
        "list": (pa.list_(pa.struct([("a", pa.map_(pa.string(), pa.float32()))])), [[], None]),
    }
    rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in kinds.items()})
    folder = folder_of(tmp_path, rows)
    [file] = folder.write(rows.to_batches())
    [(_, found)] = read(tmp_path, (file,))
    assert found.equals(rows)
    schema = pq.ParquetFile(tmp_path / file.path).schema
    physical = [schema.column(i).physical_type for i in range(7)]
    # As Spark writes them.
    assert physical == [
        "INT32",
        "INT32",
        "INT64",
        "FIXED_LEN_BYTE_ARRAY",
        "INT64",
        "INT64",
        "INT32",
    ]
    said = json.loads(found.schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert said["fields"] == from_arrow(rows.schema)
    path = str(tmp_path / file.path)
    names = ", ".join(f'"{name}"' for name in [*kinds][:-1])
    [first, last] = duckdb.sql(f"SELECT {names} FROM '{path}'").fetchall()
    assert first[:4] == tuple(values[0] for _, values in [*kinds.values()][:4])
    assert set(last) == {None}


def test_a_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    rows = pa.table({"t": text})
    with raises("bad_rows 't'"):
        folder_of(tmp_path, rows).write(rows.to_batches())


def test_a_folder_without_rows_may_have_a_file_of_its_columns(tmp_path: Path) -> None:
    rows = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    folder = folder_of(tmp_path, rows)
    assert folder.write(rows.to_batches()) == ()
    file = folder.write_columns()
    assert pq.read_schema(tmp_path / file.path).names == ["a", "b"]
