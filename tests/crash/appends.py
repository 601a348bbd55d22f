"""An application that appends many DataFrames, one after the other: a process of its own.

Arguments: what it calls itself, how many rounds, and a file whose coming starts each round.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.model.names import StreamName
from weir.settings import load
from weir.spark.appends.appender import Appender
from weir.spark.base.session import session

STREAM = StreamName("s", "events")
ROWS = 300


def append_round(appender: Appender, spark: SparkSession, name: str, number: int) -> Committed:
    """Append rows (k, writer, round, n), and return the commit. All writers have the same keys."""
    rows = spark.range(0, ROWS, 1, 2).select(
        F.concat(F.lit("key "), F.col("id") % 23).alias("k"),
        F.lit(name).alias("writer"),
        F.lit(number).alias("round"),
        F.col("id").alias("n"),
    )
    return appender.append_frame(STREAM, rows, writer_id=name, batch_id=f"round {number}")


def main(name: str, rounds: int, starts: Path) -> None:
    """Say READY, then append whenever the file of the next round has come."""
    settings = load()
    spark = session("appends")
    appender = Appender(
        Installation(settings, Database.of(settings), name, start_spark=lambda: spark)
    )
    print("READY", flush=True)
    for number in range(rounds):
        while not (starts / f"round {number}").exists():
            time.sleep(0.005)
        print(append_round(appender, spark, name, number), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
