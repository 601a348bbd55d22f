"""Copy rows of a DataFrame to a table of Weir's database, with COPY from the executors.

Each task first writes its rows to a file on its disk. So a lost connection can be waited for, and
neither the driver nor an executor has more than a few thousand rows in memory.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    TimestampType,
)

from weir.consumers.copying import Answer, check, send, too_long, write_csv
from weir.consumers.engine import Copy
from weir.database.connection import Database
from weir.settings import Settings
from weir.spark.base.exact import as_json, quoted
from weir.spark.base.session import moved, private_session

_ANSWER = "piece string, rows long, state string, error string"


def copy_rows(frame: DataFrame, copy: Copy, settings: Settings) -> tuple[tuple[str, ...], int]:
    """Send the rows of a DataFrame to a COPY, in one transaction per task. Return the transactions
    that count and the number of rows.

    Raises BadRows for a row that Postgres refuses, Unavailable if Postgres is away, Fenced if the
    batch's table of staging is gone.
    """
    fields = frame.schema.fields
    columns = quoted([field.name for field in fields])
    statement, limits = copy.statement, copy.longest

    def copy_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _copy(settings, statement, batches, limits)

    texts = [
        _text(column, field.dataType).alias(f"_{i}")
        for i, (column, field) in enumerate(zip(columns, fields, strict=True))
    ]
    # Times become texts in UTC, whatever time zone their session has.
    rows = moved(frame, private_session(frame.sparkSession)).select(*texts)
    answers = [
        Answer(*row)
        for row in moved(rows, frame.sparkSession).mapInArrow(copy_task, _ANSWER).collect()
    ]
    for answer in answers:
        check(copy.table, answer)
    return tuple(a.piece for a in answers if a.piece), sum(answer.rows for answer in answers)


def _text(column: SparkColumn, kind: DataType) -> SparkColumn:
    """Return a value as text that Postgres reads."""
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("\\x"), F.hex(column))
    if isinstance(kind, TimestampType):
        return F.concat(column.cast("string"), F.lit("+00"))
    if re.split(r"\W", kind.simpleString())[0] in ("array", "map", "struct", "variant"):
        return as_json(column)
    return column.cast("string")


def _copy(
    settings: Settings,
    statement: str,
    batches: Iterable[pa.RecordBatch],
    limits: Mapping[int, tuple[str, int]],
) -> Iterator[pa.RecordBatch]:
    """Copy the rows of one task in one transaction. Yields at most one answer."""
    with tempfile.TemporaryFile() as rows:
        count = 0
        for batch in batches:
            if answer := too_long(batch, limits):
                yield _row(answer)
                return
            count += batch.num_rows
            write_csv(batch, rows)
        if count == 0:
            return
        with Database.of(settings) as database:
            yield _row(send(database, statement, rows, count))


def _row(answer: Answer) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [answer._asdict()],
        pa.schema([("piece", pa.string()), ("rows", pa.int64()), ("state", pa.string()),
                   ("error", pa.string())]),
    )  # fmt: skip
