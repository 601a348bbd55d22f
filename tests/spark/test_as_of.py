"""As-of joins find the value that held at the time of each event, whatever the histories are."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.spark.adjuncts import as_of
from weir.spark.adjuncts.as_of import join_as_of

Change = tuple[str | None, int | None, int, int, bool, int | None]


def changes(spark: SparkSession, rows: Iterable[Change]) -> DataFrame:
    """Changes of a store: key, time, clock, rank, whether it is a deletion, value."""
    frame = spark.createDataFrame(
        list(rows),
        "_weir_key string, _weir_time long, _clock long, _seq long, _deleted boolean, v int",
    )
    return frame.withColumn("m", F.create_map(F.lit("v"), "v")).withColumn("v 2.x", F.col("v") * 2)


def held(rows: Iterable[Change], key: str | None, time: int | None) -> int | None:
    """The value that held, by reading the definition of an as-of join aloud."""
    if key is None or time is None:
        return None
    before = [r for r in rows if r[0] == key and r[1] is not None and r[1] <= time]
    if not before:
        return None
    last = max(before, key=lambda r: r[1:4])
    return None if last[4] else last[5]


def joined(events: DataFrame, history: DataFrame, values: list[str], **options: Any) -> DataFrame:
    """The events (id, k, t) with their values."""
    return join_as_of(
        events, history, key=F.col("k"), time=F.col("t"), values=values, order=["_clock", "_seq"],
        **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "packed"),
    [("broadcast", 4), pytest.param("shuffle_hash", 512, marks=pytest.mark.release)],
)
def test_events_find_what_a_brute_force_search_finds(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, hint: str, packed: int
) -> None:
    monkeypatch.setattr(as_of, "_PACKED", packed)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    keys = ["a", "b", "c", "never changed", None]
    rows: list[Change] = [
        (
            chance.choice([*keys[:3], None]), chance.choice([*range(12), None]), i // 3, i % 3,
            chance.random() < 0.3, chance.choice([*range(100), None]),
        )
        for i in range(chance.randrange(60))
    ]  # fmt: skip
    given = [(i, chance.choice(keys), chance.choice([*range(-2, 14), None])) for i in range(80)]
    events = spark.createDataFrame(given, "id int, k string, t long")
    history = changes(spark, rows)
    wanted = {i: held(rows, k, t) for i, k, t in given}
    found = joined(events, history, ["v", "m", "v 2.x"], hint=hint).collect()
    assert {row.id: row.v for row in found} == wanted
    assert len(found) == len(given)
    assert all(row.m is None or row.m["v"] == row.v for row in found)
    assert all(row["v 2.x"] == (None if row.v is None else 2 * row.v) for row in found)
    # An inner join keeps the events for which something held, also if its columns are all null.
    inner = joined(events, history, ["v"], hint=hint, how="inner").collect()
    something = {
        i for i, k, t in given
        if held([(*r[:5], 1) for r in rows], k, t) is not None
    }  # fmt: skip
    assert sorted(row.id for row in inner) == sorted(something)


def test_many_columns_change_nothing(spark: SparkSession) -> None:
    rows: list[Change] = [("a", n, n, 0, n % 5 == 0, n) for n in range(1_500)]
    events = spark.range(2_000).select(
        F.lit("a").alias("k"), (F.col("id") - 100).alias("t"),
        *[F.lit(n).alias(f"c{n}") for n in range(80)],
    )  # fmt: skip
    found = joined(events, changes(spark, rows), ["v"])
    assert found.columns == [*events.columns, "v"]
    assert {row.t: row.v for row in found.collect()} == {
        t: held(rows, "a", min(t, 1_499)) for t in range(-100, 1_900)
    }


@pytest.mark.parametrize(
    ("hint", "join"), [("broadcast", "BroadcastHashJoin"), ("shuffle_hash", "ShuffledHashJoin")]
)
def test_the_plan_is_one_hash_join_that_runs_no_python(
    spark: SparkSession, hint: str, join: str
) -> None:
    events = spark.range(10).select("id", F.col("id").cast("string").alias("k"), "id")
    events = events.toDF("id", "k", "t")
    frame = joined(events, changes(spark, [("a", 1, 1, 1, False, 1)]), ["v"], hint=hint)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count(f"{join} ") == 1
    assert "Python" not in plan
    assert "SortMergeJoin" not in plan
