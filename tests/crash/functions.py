"""What the consumers of these tests run over their events."""

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame

STREAM, FOLDER = "s/copies", "copies"


def copies(events: DataFrame) -> dict[str, DataFrame]:
    """Each event once, into a stream and into Parquet; waits where WEIR_TEST_WAIT says so."""
    if folder := os.environ.get("WEIR_TEST_WAIT"):
        Path(folder, "here").touch()
        while not Path(folder, "go").exists():
            time.sleep(0.01)
    rows = events.select("k", "n")
    return {STREAM: rows, FOLDER: rows}
