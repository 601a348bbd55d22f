"""Random values, written by the programs that people have, come back from a stream exactly, or are
malformed."""

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.chance import random_for
from tests.inputs.conftest import Files

ROWS = 200


def table(chance: Random) -> pa.Table:
    """Random columns of each type that csv files hold, with nulls."""

    def column(kind: pa.DataType, make: Callable[[], Any]) -> pa.Array:
        return pa.array([None if chance.random() < 0.1 else make() for _ in range(ROWS)], kind)

    def text() -> str:
        letters = "ab12 .,;'\"|\\/-+:_#é日\n\t"
        return "".join(chance.choice(letters) for _ in range(chance.randrange(8)))

    def double() -> float:
        return chance.choice([
            chance.random(), chance.uniform(-1e6, 1e6),
            chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300),
            float(chance.randrange(-9, 9)), round(chance.uniform(-99, 99), 2),
        ])  # fmt: skip

    second = dt.datetime(1970, 1, 1)
    columns = {
        "k": pa.array([f"key {i}" for i in range(ROWS)]),
        "text": column(pa.string(), text),
        "long": column(pa.int64(), lambda: chance.choice([
            chance.randrange(-9, 9), chance.randrange(-(1 << 63), 1 << 63)])),
        "double": column(pa.float64(), double),
        "price": column(pa.decimal128(12, 2), lambda: Decimal(
            chance.randrange(-(10**9), 10**9)).scaleb(-2)),
        "flag": column(pa.bool_(), lambda: chance.random() < 0.5),
        "day": column(pa.date32(), lambda: dt.date.fromordinal(chance.randrange(1, 3_652_059))),
        "at": column(pa.timestamp("us"), lambda: second + dt.timedelta(
            seconds=chance.randrange(-5_000_000_000, 9_000_000_000),
            microseconds=chance.randrange(10**6))),
    }  # fmt: skip
    return pa.table(columns)


def by_pyarrow(rows: pa.Table, path: Path, kind: str) -> None:
    pyarrow.csv.write_csv(rows, path) if kind == "csv" else pq.write_table(rows, path)


def by_pandas(rows: pa.Table, path: Path, kind: str) -> None:
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us",
                      double_precision=15)  # fmt: skip


def by_duckdb(rows: pa.Table, path: Path, kind: str) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        options = "HEADER, FORMAT csv" if kind == "csv" else f"FORMAT {kind}"
        options += ", PARQUET_VERSION v2" if kind == "parquet" else ""
        connection.execute(f"COPY rows TO '{path}' ({options})")


def by_polars(rows: pa.Table, path: Path, kind: str) -> None:
    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path) if kind == "csv" else frame.write_ndjson(path)


WRITERS = [by_pyarrow, by_pandas, by_duckdb, by_polars]


def same(found: Any, given: Any) -> bool:
    """Whether a value of the stream says what the writer was given."""
    if found is None or given is None:
        return found is given
    if isinstance(given, bool):
        return found in (given, str(given).lower(), str(given))
    if isinstance(given, float):
        return math.isclose(float(found), given, rel_tol=0) or float(found) == given
    if isinstance(given, (Decimal, int)):
        return Decimal(str(found)) == given
    if isinstance(given, dt.datetime):
        if not isinstance(found, dt.datetime):
            found = dt.datetime.fromisoformat(str(found).removesuffix("Z"))
        return bool(found.replace(tzinfo=None) == given)
    if isinstance(given, dt.date):
        return str(found)[:10] == given.isoformat()
    return bool(found == given)


def check(files: Files, name: str, rows: pa.Table, *, blank: str | None = "") -> None:
    """Append a file, and compare each event with what its writer was given. `blank`: what it made
    of an empty text."""
    stream = files.create()
    done = files.ingest(stream, name)
    assert (done.events, done.rejected) == (ROWS, 0)
    found = files.table(stream).to_pylist()
    for event, given_row in zip(found, rows.to_pylist(), strict=True):
        for column, value in given_row.items():
            given = blank if value == "" else value
            assert same(event.get(column), given), (column, event, value)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_program_wrote_is_in_the_stream(
    files: Files, writer: Callable[..., None], kind: str
) -> None:
    if (writer, kind) == (by_pyarrow, "json"):
        pytest.skip("pyarrow writes no JSON")
    rows = table(random_for(writer.__name__, kind))
    if (writer, kind) == (by_pandas, "json"):
        rows = rows.drop_columns(["double", "price", "at"])  # of which pandas cuts digits
    name = f"{writer.__name__}.{kind}"
    writer(rows, files.root / name, kind)
    # In csv, pandas writes null and an empty text alike.
    check(files, name, rows, blank=None if (writer, kind) == (by_pandas, "csv") else "")
