"""DataFrames whose rows keep an order: within each task, and one frame after another."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from weir.spark.base.java import java_class


def in_order_of(
    frame: DataFrame, number: str, *, ordered: int, dropped: Sequence[str] = ()
) -> tuple[DataFrame, Any]:
    """Return the rows of each task in the order of one long, `number`, without that column and
    `dropped`; and the Java query that computes them, from which observed metrics are read.

    The numbers must have the order of the last columns, which are so many (`ordered`). Spark is
    told that the rows have it, and sorts no more where it needs that order. It sorts one long by
    radix, and compares rows for anything else.
    """
    jvm: Any = frame.sparkSession._jvm
    package = "org.apache.spark.sql"
    rows = frame.sortWithinPartitions(number).drop(number, *dropped)
    query = rows._jdf.queryExecution()
    output = query.analyzed().output()
    ascending, nulls_first = (
        getattr(java_class(jvm, f"{package}.catalyst.expressions.{name}$"), "MODULE$")
        for name in ("Ascending", "NullsFirst")
    )
    by = java_class(jvm, f"{package}.catalyst.expressions.SortOrder")
    seq = java_class(jvm, "PythonUtils").toSeq
    order = seq(
        [by(output.apply(i), ascending, nulls_first, seq([]))
         for i in range(output.length() - ordered, output.length())]
    )  # fmt: skip
    session = rows._jdf.sparkSession()
    anyhow = java_class(jvm, f"{package}.catalyst.plans.physical.UnknownPartitioning")(0)
    none = java_class(jvm, "scala.Option").empty()
    minor = tuple(map(int, frame.sparkSession.version.split(".")[:2]))
    since_4_3 = [False] * (minor >= (4, 3))  # an argument that Spark itself leaves at this
    plan = java_class(jvm, f"{package}.execution.LogicalRDD")(
        output, query.toRdd(), anyhow, order, False, none, session, none, none,
        *since_4_3,
    )  # fmt: skip
    made = java_class(jvm, f"{package}.classic.Dataset").ofRows(session, plan)
    return DataFrame(made, frame.sparkSession), query


def one_after_another(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, in this order. Each frame keeps tasks of its own."""
    if len(frames) > 1:
        # If all frames have a single partition, Spark (since 4.1) reads them in one task. It does
        # not if one frame is partitioned in another way, such as into no partitions.
        java: Any = frames[0]._jdf
        nothing = java.sparkSession().createDataFrame(
            frames[0].sparkSession.sparkContext._jsc.emptyRDD(), java.schema()
        )
        frames = [*frames, DataFrame(nothing, frames[0].sparkSession)]
    return all_of(frames)


def all_of(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames as one union: `DataFrame.union` analyses each frame again with
    each frame that follows it."""
    if len(frames) == 1:
        return frames[0]
    jvm: Any = frames[0].sparkSession._jvm
    package = "org.apache.spark.sql"
    plans = java_class(jvm, "PythonUtils").toSeq(
        [one._jdf.queryExecution().analyzed() for one in frames]
    )
    union = java_class(jvm, f"{package}.catalyst.plans.logical.Union")(plans, False, False)
    java = java_class(jvm, f"{package}.classic.Dataset").ofRows(
        frames[0]._jdf.sparkSession(), union
    )
    return DataFrame(java, frames[0].sparkSession)
