"""Columns that the names of folders hold, as Hive, Spark and DuckDB write them."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from weir.controller.transactions import InputFile
from weir.inputs.files import Inputs, find_inputs
from weir.inputs.folder_names import partitions_of
from weir.inputs.rows import Values
from weir.inputs.values import here, values_of
from weir.kernel.text_options import TextOptions
from weir.model.schema import Field, new_field


def field(name: str, kind: Any) -> Field:
    return new_field(name, kind)


def values(folder: Path, *paths: str, known: list[Field] | None = None) -> Values:
    files = tuple(InputFile(path, (folder / path).stat().st_size) for path in paths)
    format_ = paths[0].rpartition(".")[2]
    inputs = Inputs(str(folder), files, format_, TextOptions(), ())
    return values_of(inputs, known, print, here, 1 << 30, quarantine=False)


def read(folder: Path, *paths: str, known: list[Field] | None = None) -> list[dict[str, Any]]:
    """The rows of files, and their columns in order."""
    found = values(folder, *paths, known=known)
    tables = [table for piece in found.pieces for table in found.tables(piece)]
    return list(pa.concat_tables(tables).select([one["name"] for one in found.fields]).to_pylist())


def write(folder: Path, path: str, **columns: Any) -> str:
    """A file of one row or more."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if path.endswith(".csv"):
        file.write_text("\n".join([",".join(columns), ",".join(map(str, columns.values()))]) + "\n")
    else:
        pq.write_table(
            pa.table({n: v if isinstance(v, pa.Array) else [v] for n, v in columns.items()}), file
        )
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_each_row_gets_the_values_of_its_own_folders(tmp_path: Path, ending: str) -> None:
    days = ("2026-01-02", "__HIVE_DEFAULT_PARTITION__", "a%2Fb%20c")
    paths = [write(tmp_path, f"dt={day}/hour=0{n}/x.{ending}", k="a") for n, day in enumerate(days)]
    assert [tuple(row.values()) for row in read(tmp_path, *paths)] == [
        ("a", "2026-01-02", "00"), ("a", None, "01"), ("a", "a/b c", "02")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "folder", "value"),
    [("integer", "01", 1), ("long", "-007", -7), ("long", "+7", 7), ("integer", "0", 0),
     ("double", "01.5", 1.5), ("decimal(5,2)", "003.50", Decimal("3.5")),
     ("date", "2026-1-2", dt.date(2026, 1, 2)), ("date", "2026-01-02", dt.date(2026, 1, 2)),
     ("boolean", "True", True), ("string", "007", "007"), ("binary", "ab", b"ab"),
     ("timestamp_ntz", "2026-01-02 03%3A04%3A05", dt.datetime(2026, 1, 2, 3, 4, 5))],
)  # fmt: skip
def test_a_value_has_the_type_of_the_streams_column_also_written_as_in_folders(
    tmp_path: Path, kind: str, folder: str, value: Any
) -> None:
    path = write(tmp_path, f"c={folder}/x.parquet", k="a")
    assert read(tmp_path, path, known=[field("C", kind)]) == [{"k": "a", "c": value}]


@pytest.mark.parametrize(
    ("kind", "folder"),
    [("integer", "x"), ("integer", "1.5"), ("byte", "300"), ("date", "yesterday"),
     ("date", "2026-13-01"), ("boolean", "maybe"), ("integer", ""),
     ({"type": "array", "elementType": "long", "containsNull": True}, "1")],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_before_rows_are_read(
    tmp_path: Path, kind: Any, folder: str
) -> None:
    path = write(tmp_path, f"c={folder}/x.parquet", k="a")
    with raises(f"file_invalid c '{folder}' stream"):
        values(tmp_path, path, known=[field("c", kind)])


def test_a_column_that_is_in_the_files_too_has_their_type_and_must_not_differ(
    tmp_path: Path,
) -> None:
    rows = {"k": pa.array(["a", "b"]), "DT": pa.array([dt.date(2026, 1, 1), None])}
    same = write(tmp_path, "dt=2026-01-01/x.parquet", **rows)
    day = dt.date(2026, 1, 1)
    assert read(tmp_path, same) == [{"k": "a", "DT": day}, {"k": "b", "DT": day}]
    other = write(tmp_path, "dt=2026-01-03/x.parquet", **rows)
    with raises("file_invalid 'DT' 2026-01-01 2026-01-03 folder"):
        read(tmp_path, other)
    null = write(tmp_path, "dt=__HIVE_DEFAULT_PARTITION__/x.parquet", **rows)
    with raises("file_invalid 'DT' 2026-01-01 None folder"):
        read(tmp_path, null)
    void = write(tmp_path, "c=7/x.parquet", k="a", c=pa.nulls(1))
    assert read(tmp_path, void, known=[field("c", "long")]) == [{"k": "a", "c": 7}]


@pytest.mark.parametrize(
    ("folder", "value"),
    [("2026-01-01", "2026-01-01"), ("__HIVE_DEFAULT_PARTITION__", None), ("a%3Db", "a=b"),
     ("a=b", "a=b"), ("", ""), ("%C3%A4", "ä"), ("00501", "00501"), ("a+b", "a+b")],
)  # fmt: skip
def test_values_are_what_hive_means_by_the_names(folder: str, value: str | None) -> None:
    assert partitions_of([f"x/dt={folder}/y.csv"]) == {"dt": [value]}


def test_other_names_of_folders_are_only_names() -> None:
    for folder in ("a", "1=2", "a b=c", "=x", "a-b=c", "x+y=z"):
        assert partitions_of([f"{folder}/dt=1.csv"]) == {}


def test_folders_that_hold_different_columns_are_not_appended_together(tmp_path: Path) -> None:
    for path in ("mixed/dt=1", "mixed/day=1", "plain", "twice/dt=1/DT=2", "reserved/_weir_seq=1",
                 "both/dt=1", "both"):  # fmt: skip
        write(tmp_path, f"{path}/x.parquet", k="a")
    (tmp_path / "hidden/dt=1").mkdir(parents=True)
    (tmp_path / "hidden/dt=1/_SUCCESS").write_text("")
    roots = [str(tmp_path)]
    for paths, code in (
        (["mixed"], "file_invalid dt day them"),
        (["mixed/dt=1", "plain"], "file_invalid none them"),
        (["twice"], "file_invalid 'DT' twice"), (["hidden"], "folder_empty 'hidden'"),
        (["reserved/_weir_seq=1"], "columns_invalid column"),
        (["both"], "file_invalid 'dt=1' order"),
    ):  # fmt: skip
        with raises(code):
            find_inputs(paths, roots, "parquet")
    assert [one.path for one in find_inputs(["mixed/dt=1"], roots).files] == [
        "mixed/dt=1/x.parquet"
    ]
