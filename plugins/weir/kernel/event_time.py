"""The event times of rows in pyarrow: of a table that is appended, and of files that were
written."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, localcontext

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.errors import InvalidInput
from weir.kernel.attempt import StagedFile
from weir.model.clock import EPOCH, SECOND
from weir.model.event_time import FIRST, PAST, UNITS
from weir.model.schema import Kind
from weir.warehouse.filesystem import filesystem

COLUMN = "_weir_event_time"  # in files: times that the statistics of no user's column tell
# Texts of other forms are no times: Spark and Python would read some of them differently.
TEXT = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])?)?"
)
_TEXT = re.compile(TEXT)
_KINDS = frozenset([*UNITS, "string", "float", "double"])


@dataclass(frozen=True)
class TimeColumn:
    """The column of an attempt's files that has the event times. `unit`: how many microseconds one
    unit of its values is."""

    name: str
    unit: int


def times_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the event times of a column's values, in microseconds; null for a value that is
    none."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        found = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date32(kind):
        found = _scaled(column.cast(pa.int32()).cast(pa.int64()), 86_400 * SECOND)
    elif pa.types.is_integer(kind):
        found = _scaled(column.cast(pa.int64()), SECOND)
    elif pa.types.is_floating(kind):
        values = column.cast(pa.float64())
        near = pc.less(pc.abs(values), 1e12)  # false for what is not a number
        values = pc.if_else(near, values, pa.scalar(None, pa.float64()))
        found = pc.trunc(pc.multiply(values, float(SECOND))).cast(pa.int64())
    elif pa.types.is_decimal(kind):
        found = pa.chunked_array([[_of_decimal(v) for v in column.to_pylist()]], pa.int64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found = times_of_texts(column.cast(pa.string()))
    else:
        raise TypeError(f"{kind} is no time")  # the caller has checked it
    inside = pc.and_(pc.greater_equal(found, FIRST), pc.less(found, PAST))
    return pc.if_else(inside, found, pa.scalar(None, pa.int64()))


def _scaled(values: pa.ChunkedArray, unit: int) -> pa.ChunkedArray:
    inside = pc.and_(pc.greater_equal(values, FIRST // unit), pc.less(values, PAST // unit))
    return pc.multiply(pc.if_else(inside, values, pa.scalar(None, pa.int64())), unit)


def _of_decimal(value: Decimal | None) -> int | None:
    if value is None or not abs(value) < 10**12:
        return None
    with localcontext(prec=60):
        return int(value * SECOND)


def times_of_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the times of texts, up to the year 9999, in microseconds; null for a text that is
    none."""
    texts = pc.utf8_trim(column, " ")
    is_time = pc.match_substring_regex(texts, rf"\A(?:{TEXT})\z")
    is_time = pc.and_(is_time, pc.invert(pc.starts_with(texts, "0000")))  # a year of Arrow's alone
    texts = pc.if_else(is_time, texts, pa.scalar(None, pa.string()))
    zoned = pc.match_substring_regex(texts, r"(Z|[+-][0-9]{2}:[0-9]{2})\z")
    try:  # all at once, if each that has the form of a time is one
        parts = [
            pc.if_else(mask, texts, pa.scalar(None, pa.string()))
            .cast(pa.timestamp("us", zone))
            .cast(pa.int64())
            for mask, zone in ((zoned, "UTC"), (pc.invert(zoned), None))
        ]
    except pa.ArrowInvalid:  # such as a 30th of February
        return pa.chunked_array([[_of_text(v) for v in column.to_pylist()]], pa.int64())
    return pc.coalesce(*parts)


def _of_text(value: str | None) -> int | None:
    if value is None or not _TEXT.fullmatch(value := value.strip(" ")):
        return None
    with suppress(ValueError):  # such as a 30th of February
        at = datetime.fromisoformat(value)
        elapsed = (at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH
        return (elapsed.days * 86_400 + elapsed.seconds) * SECOND + elapsed.microseconds
    return None


def check_type(stream: object, expression: str, kind: Kind) -> None:
    """Check that values of a type (Spark's JSON form) can be event times. Raises InvalidInput."""
    if not isinstance(kind, str) or not (kind in _KINDS or kind.startswith("decimal(")):
        shown = kind if isinstance(kind, str) else kind["type"]
        raise InvalidInput(
            "column_type_unsupported",
            f"the event time of stream {stream}, {expression!r}, is of type "
            f"{shown}, which is no time; it must be a timestamp, a date, a number of seconds since "
            "1970, or a text such as 2013-06-01 10:00:00.",
        )


def missing_column(
    stream: object, expression: str, column: str, names: Sequence[str]
) -> InvalidInput:
    """Return the error for rows without a column that the event time uses."""
    return InvalidInput(
        "column_missing",
        f"the event time of stream {stream} is {expression!r}, but the rows have no column "
        f"{column!r} (they have {', '.join(list(names)[:8])}); add it.",
    )


@dataclass(frozen=True)
class Range:
    """The smallest and the largest event time of some events, and how many of them have none."""

    low: int | None
    high: int | None
    untimed: int


def range_of(times: pa.ChunkedArray) -> Range:
    """Return the range of event times."""
    ends = pc.min_max(times).as_py()
    return Range(ends["min"], ends["max"], times.null_count)


def times_in(warehouse: str, path: str, column: TimeColumn) -> pa.ChunkedArray:
    """Return the event times of a file of the warehouse, reading no other column of it."""
    system, base = filesystem(warehouse)
    with system.open_input_file(f"{base}/{path}") as source:
        return times_of(pq.read_table(source, columns=[column.name]).column(0))


def count_late(
    warehouse: str, files: Iterable[StagedFile], column: TimeColumn, complete_until: int
) -> int:
    """Return how many events of some files are earlier than `complete_until`. The column of event
    times is read only where the range of a file does not decide."""
    late = 0
    for file in files:
        if file.min_time is None or file.max_time is None or file.min_time >= complete_until:
            continue
        if file.max_time < complete_until:
            late += file.events - file.untimed
        else:
            times = times_in(warehouse, file.path, column)
            late += pc.sum(pc.less(times, complete_until)).as_py() or 0
    return late
