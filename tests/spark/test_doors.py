"""The same value is taken, or refused with the same code, by all doors: Parquet, DataFrames and
pyarrow tables. What a file says beside its columns is never followed."""

import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir as api
from tests.raises import raises
from tests.spark.installation import PLACE, Installation
from weir.model.names import StreamName

pytestmark = pytest.mark.drawn(3)

REFUSED: dict[str, tuple[pa.DataType, Any, str]] = {
    "twins": (pa.struct({"a": pa.int8(), "A": pa.int8()}), {"a": 1, "A": 2}, "column_named_twice"),
}  # fmt: skip


def put(weir: Installation, door: str, stream: StreamName, table: pa.Table) -> None:
    """Append a table through a door."""
    if door == "parquet":
        name = f"{uuid.uuid4()}.parquet"
        pq.write_table(table, Path(weir.input) / name)
        weir.ingest(stream, [name])
    elif door == "arrow":
        api.append(
            str(stream), table, writer_id="w", batch_id=str(uuid.uuid4()), settings=weir.settings
        )
    else:
        weir.append(stream, weir.spark.createDataFrame(table))


def rows(weir: Installation, stream: StreamName) -> list[dict[str, Any]]:
    """The events in write order, as Spark reads them."""
    found = weir.frame(stream, "stream").drop(*PLACE).collect()
    return [one.asDict(recursive=True) for one in found]


@pytest.mark.parametrize("name", REFUSED)
def test_what_one_door_refuses_all_refuse_with_the_same_code(weir: Installation, name: str) -> None:
    kind, value, code = REFUSED[name]
    table = pa.table({"k": ["a"], name: pa.array([value], kind)})
    stream = weir.create()
    for door in ("parquet", "arrow"):
        with raises(code):
            put(weir, door, stream, table)
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


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


def test_encodings_and_types_that_the_vectorized_reader_lacks_are_read(weir: Installation) -> None:
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
