"""Rows whose routing key was erased from the stream, found as they are written (semantics 20)."""

from contextlib import suppress

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from weir.errors import BadRows
from weir.kernel.attempt import Attempt
from weir.model.erased_keys import DIGITS, ErasedKeys, refusal
from weir.warehouse.filesystem import filesystem

ERASED = "_weir_erased"
_MOST_CELL_DIGITS = 5


def is_erased(key: str, erased: ErasedKeys, spark: SparkSession) -> Column:
    """Return whether the text in a column is an erased key; null if it is null.

    The salt and the hashes are the row of a subquery, because plans show literals, and the UI of
    Spark and its logs show plans. The hashes lie in cells by their first digits, so that a row is
    compared with few of them, however many there are.
    """
    digits = min(_MOST_CELL_DIGITS, max(1, len(f"{erased.number:x}")))
    cells: list[list[str]] = [[] for _ in range(16**digits)]
    for one in erased.hashes:
        cells[int(one[:digits], 16)].append(one)
    row = {"salt": erased.salt, "cells": [" ".join(cell) for cell in cells]}
    known = spark.createDataFrame(pa.Table.from_pylist([{"known": row}])).scalar()
    text = F.concat(known.getField("salt"), F.encode(F.col(key), "UTF-8"))
    found = F.substring(F.sha2(text, 256), 1, DIGITS)
    cell = F.conv(F.substring(found, 1, digits), 16, 10).cast("int")
    return F.contains(known.getField("cells")[cell], found)


def refused(warehouse: str, attempt: Attempt, events: int) -> BadRows:
    """Return the error for an attempt that wrote events of erased keys, and delete its files."""
    system, base = filesystem(warehouse)
    with suppress(OSError):  # what can't be deleted now is garbage, as of each append that fails
        system.delete_dir(f"{base}/{attempt.folder}".rstrip("/"))
    return refusal(attempt.stream, attempt.routing_key, events)
