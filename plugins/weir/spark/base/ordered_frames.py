"""DataFrames whose rows keep an order, one frame after another."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from weir.spark.base.java import Java, java_class


def one_after_another(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, in this order. Each frame keeps tasks of its own."""
    if len(frames) > 1:
        # If all frames have a single partition, Spark (since 4.1) reads them in one task. It does
        # not if one frame is partitioned in another way, such as into no partitions.
        java: Java = frames[0]._jdf
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
    jvm = frames[0].sparkSession._jvm
    assert jvm is not None
    package = "org.apache.spark.sql"
    plans = java_class(jvm, "PythonUtils").toSeq(
        [one._jdf.queryExecution().analyzed() for one in frames]
    )
    union = java_class(jvm, f"{package}.catalyst.plans.logical.Union")(plans, False, False)
    java = java_class(jvm, f"{package}.classic.Dataset").ofRows(
        frames[0]._jdf.sparkSession(), union
    )
    return DataFrame(java, frames[0].sparkSession)
