"""What the consumers of these tests run over their events."""

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

STREAM, FOLDER, TABLE = "s/copies", "copies", "public.copies"
LATEST = "public.latest"  # the last event of each key
BAD = 115  # in the last segment, so that the first half is fine


def copies(events: DataFrame) -> DataFrame:
    """Each event once, into every output; waits where WEIR_TEST_WAIT says so."""
    if folder := os.environ.get("WEIR_TEST_WAIT"):
        Path(folder, "here").touch()
        while not Path(folder, "go").exists():
            time.sleep(0.01)
    return events.select("k", "n")


def picky(events: DataFrame) -> DataFrame:
    """The same, but one event it can't stand."""
    failure = F.raise_error(F.lit("I can't stand it")).cast("long")
    return events.select("k", F.when(F.col("n") == BAD, failure).otherwise(F.col("n")).alias("n"))
