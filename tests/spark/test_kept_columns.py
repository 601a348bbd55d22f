"""Which columns of a result are those of its events: nothing is computed to find that out."""

from collections.abc import Iterator

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.spark.installation import Installation
from weir.spark.reads.kept_columns import is_kept


@pytest.fixture
def events(weir: Installation) -> DataFrame:
    """Return events of several segments and commits, so that they are a union of tasks."""
    stream = weir.create(segments=4)
    for n in range(2):
        weir.append(stream, [(f"key {n} {i}", i) for i in range(20)])
    return weir.frame(stream)


def same(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from batches


def test_a_column_is_kept_only_by_what_changes_no_value_of_it(
    weir: Installation, spark: SparkSession, events: DataFrame
) -> None:
    others = spark.createDataFrame([("a", 1)], "k string, m int")
    lower = events.withColumn("k", F.lower("k"))
    number = F.row_number().over(Window.partitionBy("k").orderBy("n"))
    kept = {
        "as it is": events,
        "selected": events.select("k", "n").where("n > 3").limit(5),
        "in quotes": events.select(F.col("`k`")),
        "sorted and shuffled": events.orderBy("n").repartition(3, "k"),
        "distinct": events.select("k").distinct().dropDuplicates(["k"]),
        "grouped": events.groupBy("k").agg(F.max("n").alias("n")),
        "numbered": events.withColumn("i", number).where("i = 1"),
        "joined": events.join(others, "k"),
        "joined by more": events.join(F.broadcast(others), events.k == others.k).select(events.k),
        "exploded": events.select("k", F.explode(F.array("n", "n")).alias("n")),
        "without another": events.select("k").exceptAll(events.select("k").where("k = 'a'")),
        "other columns computed": events.selectExpr("k", "upper(k) as n"),
        "named": events.alias("e").select("e.k"),
        "renamed and back": events.withColumnRenamed("n", "m").withColumnRenamed("m", "n"),
    }
    computed = {
        "lower": lower,
        "upper in SQL": events.selectExpr("upper(k) AS k"),
        "trimmed": events.select(F.trim("k").alias("k")),
        "cast": events.select(F.col("k").cast("int").cast("string").alias("k")),
        "constant": events.withColumn("k", F.lit("a")),
        "another column": events.select(F.col("n").cast("string").alias("k")),
        "swapped": events.select(F.lit("a").alias("k"), F.col("k").alias("n")),
        "filled": events.fillna({"k": "none"}),
        "replaced": events.replace("a", "b", ["k"]),
        "then filtered": lower.where("n > 3").orderBy("k").select("k"),
        "then grouped": lower.groupBy("k").count(),
        "second of a union": events.select("k").union(lower.select("k")),
        "first of a union": lower.select("k").union(events.select("k")),
        "third of unions": events.union(events).union(lower),
        "by name": events.select("k", "n").unionByName(lower.select("n", "k")),
        # The rows of the second part follow those of the first, whatever their order was.
        "with itself": events.union(events.where("n > 3")),
        "others in a union": events.select("k").union(others.select("k")),
        "of others": others.join(events.withColumnRenamed("k", "e"), F.col("e") == others.k),
        "in Python": events.select("k", "n").mapInPandas(same, "k string, n long"),
        "with the schema of events": events.mapInPandas(same, events.schema),
        "made anew": spark.createDataFrame([("a",)], "k string"),
        "rolled up": events.rollup("k").count(),
        "an aggregate": events.groupBy("n").agg(F.max("k").alias("k")),
        "of a window": events.withColumn("k", F.lag("k").over(Window.orderBy("n"))),
        "a part of a list": events.select(F.explode(F.split("k", " ")).alias("k")),
    }
    wrong = [what for what, frame in kept.items() if not is_kept("k", frame, events)]
    wrong += [
        f"computed: {what}" for what, frame in computed.items() if is_kept("k", frame, events)
    ]
    assert wrong == []
    weir.spark.catalog.clearCache()
