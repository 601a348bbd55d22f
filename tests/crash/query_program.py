"""A streaming query in a process of its own: it reads as the reader of a group, and appends to a
stream. Arguments: group, stream, checkpoint."""

import sys

from pyspark.sql import SparkSession


def main() -> None:
    group, stream, checkpoint = sys.argv[1:]
    spark = SparkSession.builder.master("local[2]").appName("a query").getOrCreate()
    query = (
        spark.readStream.format("weir")
        .option("readerGroup", group)
        .option("maxEventsPerTrigger", 20)
        .load()
        .drop("_segment", "_offset", "_clock")
        .writeStream.format("weir")
        .option("writerId", "copy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(stream)
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
