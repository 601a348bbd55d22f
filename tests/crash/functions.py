"""What the consumers of these tests run over their events."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

STREAM, FOLDER, TABLE = "s/copies", "copies", "public.copies"
LATEST = "public.latest"  # the last event of each key
BAD = 115  # in the last segment, so that the first half is fine


def same(events: Any) -> Any:
    """The events, of whatever engine."""
    return events


def copies(events: DataFrame) -> DataFrame:
    """Return each event once, for every output. Wait where WEIR_TEST_WAIT says so."""
    _wait()
    return events.select("k", "n")


def waiting(events: DataFrame) -> DataFrame:
    """Return each event once. Wait in Spark's workers."""
    return events.select("k", "n").mapInArrow(_waiting, "k string, n long")


def _waiting(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        _wait()
        yield batch


def ending(events: DataFrame) -> DataFrame:
    """End each process of Spark's workers that reads an event."""
    return events.select("k", "n").mapInArrow(_ending, "k string, n long")


def _ending(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        os._exit(3)
    return iter(())


def joined(events: DataFrame, adjuncts: Mapping[str, DataFrame]) -> DataFrame:
    """Return the keys of the events with the number that the one store has for them."""
    [rows] = adjuncts.values()
    return events.select("k").join(rows, F.col("k") == F.col("_weir_key")).select("k", "n")


def slow_values(events: pa.RecordBatch) -> pa.StructArray:
    """Return the number of each event, as the value of a store. Wait as `copies` does."""
    if events.num_rows:
        _wait()
    return pa.StructArray.from_arrays([events.column("n")], names=["n"])


def _wait() -> None:
    if folder := os.environ.get("WEIR_TEST_WAIT"):
        Path(folder, "here").touch()
        while not Path(folder, "go").exists():
            time.sleep(0.01)


def picky(events: DataFrame) -> DataFrame:
    """Return each event once, for every output, but fail on one event."""
    failure = F.raise_error(F.lit("I can't stand it")).cast("long")
    return events.select("k", F.when(F.col("n") == BAD, failure).otherwise(F.col("n")).alias("n"))


def held(events: Any) -> Any:
    """The events, of whatever engine, once they are let go."""
    _wait()
    return events


def unmended(events: Any) -> Any:
    """The events, of whatever engine, once `mended` is where WEIR_TEST_WAIT says."""
    if not Path(os.environ["WEIR_TEST_WAIT"], "mended").exists():
        raise KeyError("price")
    return events
