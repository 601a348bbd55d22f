"""Transforms that Spark has mean what they mean there; and tasks of Spark compute keys as any door
does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.released import only
from tests.spark.installation import Installation, setting
from tests.spark.xxh64 import position
from weir.annex.verification.verify import by_pyarrow, verify
from weir.kernel.transforms import Computation, failing
from weir.model.transforms import value_of
from weir.spark.appends import stage
from weir.spark.base.session import private_session

TEXTS = [
    "", " ", "a", "ÄÖß", "İI", "ΑΣ", "ﬃ", "e\u0301", "😀bc", "\ta ", "1", "-7", "+7", " 12 ", "012",
    "1.5", "1e3", "2147483648", "9223372036854775807", "-9223372036854775808", "1.005", "0x10",
    "true", "T", "no", "2024-02-29", "2023-02-29", "2024-2-9", "2024", "2024-02", "0001-01-01",
    "9998-12-31 23:59:59.999999", "2024-02-29 12:30", "2024-02-29T12:30:15.5+02:00", "29.02.2024",
    "29.02.2024 12:30", "31.12.1969 23:59", "1.1.2024", "today", "now", "12:30",
]  # fmt: skip
MOMENTS = [0, -1, 1_709_209_815_500_000, -62_135_596_800_000_000, 253_370_764_799_999_999,
           -2_208_988_800_000_001]  # fmt: skip
COLUMNS = {
    "s": pa.array([*TEXTS, None]),
    "n": pa.array([0, 1, -1, 127, -(2**31), 2**31, 10**12, -(10**12), 2**53, None], pa.int64()),
    "i": pa.array([0, -7, 2**31 - 1, -(2**31), None], pa.int32()),
    "d": pa.array(["0.00", "-0.05", "1.50", "1234567.89", None]).cast(pa.decimal128(9, 2)),
    "z": pa.array(["0.00000001", "-0.00000010", "0E-8", "12345.6", None]).cast(
        pa.decimal128(20, 8)
    ),
    "t": pa.array([*MOMENTS, None], pa.timestamp("us", "UTC")),
    "l": pa.array([*MOMENTS, None], pa.timestamp("us")),
    "y": pa.array([0, -1, 19_782, -719_162, 2_932_531, None], pa.int32()).cast(pa.date32()),
    "b": pa.array([True, False, None]),
}
SAME = [
    "lower(s)", "upper(s)", "trim(s)", "left(s, 2)", "substring(s, 2, 2)", "concat(s, '-', n)",
    "coalesce(s, 'x')", "coalesce(i, n, 0)", *(f"string({name})" for name in COLUMNS), "bigint(i)",
    "date(t)", "date(l)", "date(y)", "timestamp(y)", "year(t)", "year(y)", "month(t)", "month(l)",
    "day(t)", "day(y)", "hour(t)", "hour(l)", "minute(t)", "minute(y)", "timestamp_millis(i)",
    "timestamp_micros(n)",
]  # fmt: skip
# Transforms, each with what Spark calls it if it is to give null instead of failing.
SHARED = {
    **{text: text for text in SAME},
    "int(s)": "try_cast(s AS int)",
    "bigint(s)": "try_cast(s AS bigint)",
    "int(n)": "try_cast(n AS int)",
    "cast(n AS decimal(12, 0))": "try_cast(n AS decimal(12, 0))",
    "cast(s AS decimal(12, 2))": "try_cast(s AS decimal(12, 2))",
    "cast(s AS double)": "try_cast(s AS double)",
    "cast(s AS boolean)": "try_cast(s AS boolean)",
    "date(s)": "try_cast(s AS date)",
    "timestamp(s)": "try_cast(s AS timestamp)",
    "to_date(s, 'dd.MM.yyyy')": "try_to_date(s, 'dd.MM.yyyy')",
    "to_timestamp(s, 'dd.MM.yyyy HH:mm')": "try_to_timestamp(s, 'dd.MM.yyyy HH:mm')",
}
# What only Spark makes something of: here a text is cast exactly, or fails.
ONLY_SPARK = {
    "int(s)": {"+7", "012"},
    "bigint(s)": {"+7", "012"},
    "cast(s AS decimal(12, 2))": {"+7", "012", "1.005"},
    "cast(s AS double)": {"+7", "012", "9223372036854775807", "-9223372036854775808"},
    "cast(s AS boolean)": {"T", "no", "1"},
    "date(s)": {"2024-2-9", "2024", "2024-02"},
    "timestamp(s)": {"2024-2-9", "2024", "2024-02", "12:30"},  # the last one of today
}


@pytest.mark.parametrize("text", SHARED)
def test_a_transform_that_spark_has_means_the_same(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    transform = value_of(text, "key")
    rows = rows_of(transform.columns)
    found = Computation.of(transform, rows.schema, "key").over(rows)
    rows = rows.append_column("row", pa.array(range(rows.num_rows)))
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = private_session(spark).read.parquet(str(tmp_path / "rows.parquet"))
    wanted = frame.selectExpr("row", f"{SHARED[text]} AS v").toArrow().sort_by("row")["v"]
    fails = failing(found).to_pylist()
    more, given = set(), rows[transform.columns[0]]
    for value, ours, fail, theirs in zip(given, found.values, fails, wanted, strict=True):
        if fail and theirs.is_valid:
            more.add(value.as_py())
        else:
            assert ours.cast(wanted.type) == theirs, (text, value)
    assert more == ONLY_SPARK.get(text, set())


def rows_of(names: Sequence[str]) -> pa.Table:
    """Rows with all values of each of these columns."""
    count = max(len(COLUMNS[name]) for name in names)
    places = {name: pa.array([i % len(COLUMNS[name]) for i in range(count)]) for name in names}
    return pa.table({name: COLUMNS[name].take(places[name]) for name in names})


ROWS = """SELECT * FROM VALUES
    ('Köln', 7, named_struct('y', 7), 'p', TIMESTAMP '2024-03-01 00:00:00 UTC', 1.50),
    ('bonn', 8, named_struct('y', 8), 'q', TIMESTAMP '2024-03-01 12:30:00.5 UTC', 2.25)
    AS rows (k, n, x, `a.b`, t, d)"""
# What the key of both rows is.
KEYS = {
    "k": ["Köln", "bonn"],
    "upper(k)": ["KÖLN", "BONN"],
    "concat(k, '-', n)": ["Köln-7", "bonn-8"],
    "n": ["7", "8"],
    "x.y": ["7", "8"],
    "`a.b`": ["p", "q"],
    "t": ["2024-03-01 00:00:00", "2024-03-01 12:30:00.5"],
    "date(t)": ["2024-03-01", "2024-03-01"],
    "d": ["1.50", "2.25"],
}


@pytest.mark.parametrize("key", only("t", "`a.b`", "concat(k, '-', n)", of=KEYS))
@pytest.mark.parametrize("shuffled", [False, True])
def test_the_key_of_a_dataframe_is_the_same_whatever_its_session_says(
    weir: Installation, monkeypatch: pytest.MonkeyPatch, key: str, shuffled: bool
) -> None:
    if shuffled:
        monkeypatch.setattr(stage, "MANY_FILES", 0)
    stream = weir.create(key=key, segments=50, event_time="to_timestamp(t)")
    with setting(weir.spark, {"spark.sql.session.timeZone": "America/New_York"}):
        done = weir.append(stream, weir.spark.sql(ROWS).repartition(2))
    facts = weir.facts(stream).sort_values("n")
    for value, (low, high) in zip(KEYS[key], facts["_range"], strict=True):
        assert low <= position(value) < high, value
    assert (done.min_event_time, done.untimed) == (1_709_251_200_000_000, 0)


def test_rows_that_fail_are_set_aside_where_rows_are_shuffled(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "MANY_FILES", 0)
    stream = weir.create(key="int(k)", on_missing_key="spread", on_bad_rows="quarantine")
    rows: list[Any] = [("1", 1), ("x", 2), (None, 3), ("1", 4), ("007", 5)]
    done = weir.append(stream, weir.spark.createDataFrame(rows, "k string, n long").repartition(4))
    assert (done.events, done.rejected) == (3, 2)
    facts = weir.facts(stream)
    assert sorted(facts["n"]) == [1, 3, 4]
    assert len({row["_segment"] for _, row in facts.iterrows() if row["k"] == "1"}) == 1


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("t", "timestamp_seconds(1700000000 + id * 5000) AS t"),
        ("lower(s)", "if(id % 7 = 0, cast(X'FF' AS string), concat('K', id)) AS s"),
        ("concat(k, '!')", "id AS more"),  # of a default
    ],
)
def test_rows_that_are_sorted_by_segment_keep_their_order(
    weir: Installation, monkeypatch: pytest.MonkeyPatch, key: str, column: str
) -> None:
    monkeypatch.setattr(stage, "MANY_FILES", 0)
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}
        for name, kind, more in (("n", "long", {}), ("k", "string", {"default": "x"}))
    ]
    stream = weir.create(
        key=key, segments=8, fields=fields, on_new_column="add", on_missing_key="spread",
        on_bad_rows="quarantine",
    )  # fmt: skip
    with setting(weir.spark, {"spark.sql.session.timeZone": "America/New_York"}):
        frame = weir.spark.range(0, 300, 1, 3).selectExpr("id AS n", column)
        done = weir.append(stream, frame)
    assert done.events + done.rejected == 300
    weir.check(stream, key=None)
    checked = verify(weir.opened, contents=by_pyarrow(weir.opened, contents=True))
    assert (checked.keys_not_checked, dict(checked.damage)) == (0, {})
