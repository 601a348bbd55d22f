"""Copy rows of a DataFrame to a table of Weir's database, with COPY from the executors.

Each task first writes its rows to a file on its disk. So a lost connection can be waited for, and
neither the driver nor an executor has more than a few thousand rows in memory.
"""

import errno
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    StringType,
    StructType,
    TimestampType,
)
from sqlalchemy import exc

from weir.database.connection import Database, copy_in
from weir.database.refusals import sqlstate
from weir.errors import DatabaseFailed, Fenced, InvalidInput, Unavailable
from weir.reader_groups.outputs.refused_rows import bad_rows, of_rows
from weir.reader_groups.outputs.tables import Column
from weir.settings import Settings
from weir.spark.base.exact import as_json, quoted
from weir.spark.base.session import moved, private_session

# For each type of Spark, the types of Postgres that keep all its values unchanged.
_FITS = {
    "boolean": {"bool"},
    "tinyint": {"int2", "int4", "int8", "numeric"},
    "smallint": {"int2", "int4", "int8", "numeric"},
    "int": {"int4", "int8", "numeric"},
    "bigint": {"int8", "numeric"},
    "float": {"float4", "float8"},
    "double": {"float8"},
    "decimal": {"numeric"},
    "string": {"text", "varchar", "uuid", "json", "jsonb"},
    "binary": {"bytea"},
    "date": {"date"},
    "timestamp": {"timestamptz"},
    "timestamp_ntz": {"timestamp"},
    "array": {"json", "jsonb"},
    "map": {"json", "jsonb"},
    "struct": {"json", "jsonb"},
}
_MICROSECONDS = {"timestamp", "timestamptz"}
_CSV = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
_SHOWN = 200  # the most characters of a value that an error quotes
_ANSWER = "piece string, rows long, state string, error string"


def matched(
    table: str, columns: Sequence[Column], schema: StructType, needed: Sequence[str] = ()
) -> list[Column]:
    """Return the table's columns for the columns of a result, in the result's order, matched by
    name. `needed`: columns that the result must have in any case.

    Raises InvalidInput for a column that the table does not have, that does not fit, that occurs
    twice, or that is missing.
    """
    names = [field.name for field in schema.fields]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInput(
            "column_named_twice",
            f"the result for table {table} has column {twice[0]!r} twice; rename or drop one.",
        )
    if ours := [name for name in names if name.lower().startswith("_weir")]:
        raise InvalidInput(
            "column_name_reserved",
            f"column {ours[0]!r} of the result for table {table} has a reserved name (_weir...); "
            "rename it.",
        )
    known = {column.name: column for column in columns}
    found = []
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            raise InvalidInput(
                "column_unknown",
                f"table {table} has no column {field.name!r} (it has "
                f"{', '.join(list(known)[:8])}); drop it from the result, or add it to the table.",
            )
        if column.generated:
            raise InvalidInput(
                "column_generated",
                f"column {field.name!r} of table {table} is computed by Postgres and can't be "
                "written; leave it out of the result.",
            )
        if not _fits(field.dataType, column):
            what = "cast it to what that column holds"
            if column.kind == "bpchar":
                what = "make that column text or varchar, as its type pads values with blanks"
            if column.kind in _MICROSECONDS:
                what += ", with all six digits of a second"
            raise InvalidInput(
                "column_type_differs",
                f"column {field.name!r} is {field.dataType.simpleString()}, but {column.shown} in "
                f"table {table}; {what}.",
            )
        found.append(column)
    if absent := [name for name in needed if name not in names]:
        raise InvalidInput(
            "column_missing",
            f"the result for table {table} does not have column {absent[0]!r}, which key or newest "
            "of its output names; add it to the result.",
        )
    missing = [c.name for c in columns if c.required and c not in found and not c.generated]
    if missing:
        raise InvalidInput(
            "column_missing",
            f"column {missing[0]!r} of table {table} is NOT NULL without a default, but the "
            "result does not have it; add it to the result.",
        )
    if not found:
        raise InvalidInput(
            "no_columns", f"the result for table {table} has no columns; return at least one."
        )
    return found


def _fits(kind: DataType, column: Column) -> bool:
    if column.is_enum:
        return isinstance(kind, StringType)
    if isinstance(kind, DecimalType) and column.scale is not None and kind.scale > column.scale:
        return False  # Postgres would round the value
    if column.kind in _MICROSECONDS and 0 <= column.modifier < 6:
        return False  # it would round here, too
    return column.kind in _FITS.get(re.split(r"\W", kind.simpleString())[0], ())


def longest(columns: Sequence[Column]) -> dict[int, tuple[str, int]]:
    """Return the name and the maximum length of each column with a limited length, by its index."""
    return {
        i: (column.name, column.modifier - 4)
        for i, column in enumerate(columns)
        if column.kind == "varchar" and column.modifier >= 0
    }


def copy_rows(
    frame: DataFrame,
    table: str,
    statement: str,
    settings: Settings,
    limits: Mapping[int, tuple[str, int]] | None = None,
) -> tuple[tuple[str, ...], int]:
    """Send the rows of a DataFrame to a COPY, in one transaction per task. Return the transactions
    that count and the number of rows. `limits` comes from `longest`.

    Raises BadRows for a row that Postgres refuses, Unavailable if Postgres is away, Fenced if the
    batch's table of staging is gone.
    """
    fields = frame.schema.fields
    columns = quoted([field.name for field in fields])

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _copy(settings, statement, batches, dict(limits or {}))

    texts = [
        _text(column, field.dataType).alias(f"_{i}")
        for i, (column, field) in enumerate(zip(columns, fields, strict=True))
    ]
    # Times become texts in UTC, whatever time zone their session has.
    rows = moved(frame, private_session(frame.sparkSession)).select(*texts)
    answers = moved(rows, frame.sparkSession).mapInArrow(copy, _ANSWER).collect()
    for answer in answers:
        if answer.error is not None:
            if of_rows(answer.state):
                raise bad_rows(table, answer.error)
            if answer.state == "42P01":
                raise Fenced(
                    "batch_taken_over",
                    f"the rows for table {table} have no place any more ({answer.error}): another "
                    "reader has taken over the batch; what this one wrote is garbage.",
                )
            raise Unavailable(
                "rows_not_copied",
                f"the rows for table {table} could not be copied ({answer.error}); the next try "
                "reads the batch again, so see to the cause if it stays.",
            )
    return tuple(answer.piece for answer in answers), sum(answer.rows for answer in answers)


def _text(column: SparkColumn, kind: DataType) -> SparkColumn:
    """Return a value as text that Postgres reads."""
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("\\x"), F.hex(column))
    if isinstance(kind, TimestampType):
        return F.concat(column.cast("string"), F.lit("+00"))
    if re.split(r"\W", kind.simpleString())[0] in ("array", "map", "struct"):
        return as_json(column)
    return column.cast("string")


def _too_long(batch: pa.RecordBatch, limits: Mapping[int, tuple[str, int]]) -> str | None:
    """Return Postgres's error for a value that is too long. Postgres cuts off excess blanks
    silently, so they are checked here."""
    for i, (name, limit) in limits.items():
        found = pc.index(pc.greater(pc.utf8_length(batch.column(i)), limit), True).as_py()
        if found >= 0:
            value = batch.column(i)[found].as_py()[:_SHOWN]
            return f'value too long for type character varying({limit}) (column {name}: "{value}")'
    return None


def _copy(
    settings: Settings,
    statement: str,
    batches: Iterable[pa.RecordBatch],
    limits: Mapping[int, tuple[str, int]],
) -> Iterator[pa.RecordBatch]:
    """Copy the rows of one task in one transaction. Yields at most one answer."""
    with _rows_on_disk() as rows:
        count = 0
        for batch in batches:
            if message := _too_long(batch, limits):
                yield _answer(None, 0, "22001", message)
                return
            count += batch.num_rows
            pyarrow.csv.write_csv(batch, rows, _CSV)
        if count == 0:
            return
        piece = state = error = None
        try:
            with Database.of(settings) as database:
                piece = database.transaction(lambda c: copy_in(c, statement, rows))
        except exc.DBAPIError as refused:
            state = sqlstate(refused)
            context = getattr(getattr(refused.orig, "diag", None), "context", None) or ""
            where = re.sub(r"^COPY \S+, line \d+,? ?", "", context.partition("\n")[0])
            error = str(refused.orig).partition("\n")[0] + (f" ({where})" if where else "")
        except (Unavailable, DatabaseFailed) as away:
            state, error = "", away.sentence
        yield _answer(piece, count, state, error)


@contextmanager
def _rows_on_disk() -> Iterator[IO[bytes]]:
    """Yield a file of this worker. Python does not say of which disk it is if that is full."""
    try:
        with tempfile.TemporaryFile() as rows:
            yield rows
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
            error.filename = tempfile.gettempdir()
        raise


def _answer(piece: str | None, rows: int, state: str | None, error: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"piece": [piece], "rows": [rows], "state": [state], "error": [error]},
        pa.schema([("piece", pa.string()), ("rows", pa.int64()), ("state", pa.string()),
                   ("error", pa.string())]),
    )  # fmt: skip
