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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chance import random_for
from tests.spark.installation import PLACE, Installation
from weir.kernel.text_options import TextOptions
from weir.spark.inputs.guess import guess
from weir.spark.inputs.text_values import value as value_of

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


def by_spark(weir: Installation, rows: pa.Table, path: Path, kind: str) -> None:
    folder = path.with_suffix(".folder")
    frame = weir.spark.createDataFrame(rows).coalesce(1)
    # Spark cuts times to milliseconds if it is not told otherwise.
    times = dict.fromkeys(("timestampFormat", "timestampNTZFormat"), "yyyy-MM-dd HH:mm:ss.SSSSSS")
    if kind == "csv":
        white = dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), False)
        frame.write.options(header=True, escape='"', **times, **white).csv(str(folder))
    else:
        frame.write.format(kind).options(**times).save(str(folder))
    (part,) = folder.glob(f"part-*.{kind}")
    part.rename(path)


def by_pyarrow(weir: Installation, rows: pa.Table, path: Path, kind: str) -> None:
    pyarrow.csv.write_csv(rows, path) if kind == "csv" else pq.write_table(rows, path)


def by_pandas(weir: Installation, rows: pa.Table, path: Path, kind: str) -> None:
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us",
                      double_precision=15)  # fmt: skip


def by_duckdb(weir: Installation, rows: pa.Table, path: Path, kind: str) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        options = "HEADER, FORMAT csv" if kind == "csv" else f"FORMAT {kind}"
        connection.execute(f"COPY rows TO '{path}' ({options})")


def by_polars(weir: Installation, rows: pa.Table, path: Path, kind: str) -> None:
    frame = polars.from_arrow(rows)
    assert isinstance(frame, polars.DataFrame)
    if kind == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path) if kind == "csv" else frame.write_ndjson(path)


WRITERS = [by_spark, by_pyarrow, by_pandas, by_duckdb, by_polars]


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


@pytest.mark.release
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_program_wrote_is_in_the_stream(
    weir: Installation, writer: Callable[..., None], kind: str
) -> None:
    if (writer, kind) == (by_pyarrow, "json"):
        pytest.skip("pyarrow writes no JSON")
    rows = table(random_for(writer.__name__, kind))
    if (writer, kind) == (by_pandas, "json"):
        rows = rows.drop_columns(["double", "price", "at"])  # of which pandas cuts digits
    path = Path(weir.input) / f"{writer.__name__}.{kind}"
    writer(weir, rows, path, kind)
    stream = weir.create(segments=1)
    done = weir.ingest(stream, [path.name], kind)
    assert (done.events, done.rejected) == (ROWS, 0)
    found = weir.frame(stream, "stream").drop(*PLACE).collect()
    for event, given_row in zip(found, rows.to_pylist(), strict=True):
        for name, value in given_row.items():
            if (writer, kind, value) == (by_pandas, "csv", ""):
                value = None  # pandas writes both alike
            assert same(event.asDict().get(name), value), (name, event[name], value)


_TEXTS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.from_regex(r"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r" ?[0-9_]{1,5}[dDfFL]?", fullmatch=True),
    st.dates().map(str), st.datetimes().map(str), st.times().map(str),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda t: t.isoformat()),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?Z?",
                  fullmatch=True),
    st.sampled_from(["true", "TRUE", "NaN", "Infinity", "-0", "0x1F", "NA", "null", "1e400"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=6),
)  # fmt: skip


def _back(value: Any, text: str) -> bool:
    """Whether the text can be known from the value."""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, float):
        return (math.isnan(value) and text == "NaN") or (
            repr(value) == repr(float(text)) and Decimal(text).is_finite() is math.isfinite(value)
            # Java before 19 writes -85737384264691552 with 17 digits, and Python with 16.
            and (not math.isfinite(value)
                 or Decimal(text) in (Decimal(repr(value)), Decimal(f"{value:.16e}")))
        )  # fmt: skip
    if isinstance(value, dt.datetime):
        at = dt.datetime.fromisoformat(text).replace(tzinfo=None)
        return value == at
    if isinstance(value, Decimal):
        return format(value, "f") == text
    return str(value) == text


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_guess_keeps_every_text_of_hundreds_of_random_columns(
    spark: Any, data: st.DataObject
) -> None:
    columns = [data.draw(st.lists(_TEXTS, min_size=1, max_size=3)) for _ in range(60)]
    rows = [tuple(column[i % len(column)] for column in columns) for i in range(6)]
    names = [f"c{i}" for i in range(len(columns))]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in names))
    how = TextOptions()
    found = guess(frame, [frame[name] for name in names], how)
    kinds = [one.kind or "string" for one in found]
    typed = frame.select(*[
        value_of(frame[name], kind, how, guessed=True).alias(name)
        for name, kind in zip(names, kinds, strict=True)
    ]).collect()  # fmt: skip
    for row, texts in zip(typed, rows, strict=True):
        for kind, one, text in zip(kinds, row, texts, strict=True):
            assert (one is None and text == "") or _back(one, text), (kind, one, text)


_FIRST = 3
# The first texts of a column, later ones, and the type.
SUGGESTED: list[tuple[list[str], list[str], str]] = [
    (["1", "2", "3"], ["4", "-5"], "long"),
    (["1", "2", "3"], ["4\n"], "string"),
    (["1", "2", "3"], ["007"], "string"),
    (["1", "2", "3"], ["-0"], "string"),
    (["1", "2", "3"], ["1.5"], "double"),
    (["1", "2", "3"], ["1.0"], "string"),
    (["1", "2", "3"], ["9223372036854775808"], "decimal(38,0)"),
    (["1", "2", "3"], ["x"], "string"),
    (["1.5", "2.5", "3"], ["4", "1e-05"], "double"),
    (["1.5", "2.5", "3"], ["4.0"], "string"),
    (["1.5", "2.5", "3.5"], ["4.0", "NaN"], "double"),
    (["1.5", "2.0", "3.5"], ["4"], "string"),
    (["1.5", "2.0", "3.5"], ["4.0", "5.25"], "double"),
    (["1.5", "2.5", "3.5"], ["0.10"], "string"),
    (["1.5", "2.5", "3.5"], ["0.1234567890123456789"], "string"),
    (["1.50", "2.55", "3.45"], ["-4.00"], "decimal(18,2)"),
    (["1.50", "2.55", "3.45"], ["-0.00"], "string"),
    (["1.50", "2.55", "3.45"], ["1.50\n"], "string"),
    (["1.50", "2.55", "3.45"], ["12345678901234567.25"], "decimal(38,2)"),
    (["1.50", "2.55", "3.45"], ["1.5"], "string"),
    (["1.55", "2.55", "3.45"], ["1.50"], "decimal(18,2)"),
    (["true", "false", "true"], ["false"], "boolean"),
    (["true", "false", "true"], ["True"], "string"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["1999-12-31"], "date"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["2023-02-29"], "string"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["2024-01-31\n"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59"], "timestamp"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31T23:59:59"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59Z"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59-00"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59.25"], "timestamp"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59.20"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 24:00:00"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59\n"], "string"),
    (["2024-01-31 01:02:03", "2024-01-31 01:02:03.000100"] * 2, ["2024-01-31 01:02:03.1"],
     "string"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.0Z"], "timestamp"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.5+02:00"], "string"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.5"], "string"),
]  # fmt: skip


@pytest.mark.release
def test_later_rows_refute_what_the_first_ones_suggest(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.spark.inputs.guess.SAMPLE", _FIRST)
    height = 1 + max(len(some) + len(later) for some, later, _ in SUGGESTED)
    filled = [(some + later + [""] * height)[:height] for some, later, _ in SUGGESTED]
    names = [f"c{i}" for i in range(len(SUGGESTED))]
    rows = [tuple(column[i] for column in filled) for i in range(height)]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in names)).coalesce(1)
    how = TextOptions()
    found = guess(frame, [frame[name] for name in names], how)
    wrong = [
        (column, one) for column, one in zip(SUGGESTED, found, strict=True) if one.kind != column[2]
    ]
    assert not wrong
    kept = frame.select(*[
        value_of(frame[name], one.kind or "string", how, guessed=True).alias(name)
        for name, one in zip(names, found, strict=True)
    ]).collect()  # fmt: skip
    lost = [(text, column) for texts, values in zip(rows, kept, strict=True)
            for text, one, column in zip(texts, values, SUGGESTED, strict=True)
            if text != "" and one is None]  # fmt: skip
    assert not lost
