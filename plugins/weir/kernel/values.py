"""Rows of a table as Python values, whatever the events hold.

pyarrow's own conversion stops at the first value that Python's types can't hold: a date or a time
before the year 1 or after 9999, or a text that is not UTF-8. Here such a value becomes a text:
`+10000-01-01`, `-0043-03-15` (44 BC; the years of ISO 8601, which have a year 0), and `\\xff` for a
byte that is not UTF-8.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

_DAY = 86_400_000_000  # microseconds
_ERA = 146_097  # days of 400 years
_FIRST, _LAST = date.min.toordinal(), date.max.toordinal()
_EPOCH = date(1970, 1, 1).toordinal()
_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table, by column.

    A map is a dict if its keys are texts that differ, and otherwise a list of pairs. A value that
    Python's types can't hold is a text (see above).
    """
    names = table.column_names
    columns = map(_column, table.columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _column(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if not (pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")):
        try:
            return list(column.to_pylist())
        except (ValueError, OverflowError, pa.ArrowException):
            pass  # one value of the column is not Python's; each is converted by itself
    convert = _or_none(kind)
    return [convert(value) for value in column]


def _converter(kind: pa.DataType) -> Callable[[pa.Scalar], object]:
    """Return what converts a scalar of a type that is not null."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda s: s.as_buffer().to_pybytes().decode(errors="backslashreplace")
    if pa.types.is_date32(kind):
        return lambda s: _date(s.value)
    if pa.types.is_timestamp(kind):
        return lambda s: _moment(s.value * _NS[kind.unit], aware=kind.tz is not None)
    if pa.types.is_map(kind):
        return _of_map(kind)
    if pa.types.is_struct(kind):
        parts = [(i, kind.field(i).name, _or_none(kind.field(i).type))
                 for i in range(kind.num_fields)]  # fmt: skip
        return lambda s: {name: part(s[i]) for i, name, part in parts}
    if pa.types.is_nested(kind):
        element = _or_none(kind.value_type)
        return lambda s: [element(one) for one in s.values]
    return lambda s: s.as_py()


def _or_none(kind: pa.DataType) -> Callable[[pa.Scalar], object]:
    convert = _converter(kind)
    return lambda s: convert(s) if s.is_valid else None


def _of_map(kind: pa.MapType) -> Callable[[pa.Scalar], object]:
    key, item = _or_none(kind.key_type), _or_none(kind.item_type)
    texts = pa.types.is_string(kind.key_type)

    def convert(scalar: pa.Scalar) -> object:
        pairs = [(key(pair[0]), item(pair[1])) for pair in scalar.values]
        found = dict(pairs) if texts else {}
        return found if len(found) == len(pairs) and texts else [list(pair) for pair in pairs]

    return convert


def date_text(days: int) -> str:
    """Return a day since 1970 as text."""
    return str(_date(days))


def moment_text(clock: int) -> str:
    """Return microseconds since 1970 as text, with all digits of a second."""
    days, rest = divmod(clock, _DAY)
    time = (datetime.min + timedelta(microseconds=rest)).time()
    return f"{_date(days)} {time.isoformat('microseconds')}"


def _date(days: int) -> date | str:
    ordinal = days + _EPOCH
    if _FIRST <= ordinal <= _LAST:
        return date.fromordinal(ordinal)
    # The calendar repeats after an era; each has 400 years.
    eras, within = divmod(ordinal - 1, _ERA)
    there = date.fromordinal(within + 1)
    year = there.year + 400 * eras
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{there:%m-%d}"


def _moment(nanoseconds: int, *, aware: bool) -> datetime | str:
    clock, finer = divmod(nanoseconds, 1000)
    days, rest = divmod(clock, _DAY)
    day, time = _date(days), timedelta(microseconds=rest)
    if isinstance(day, date) and not finer:
        return datetime(day.year, day.month, day.day, tzinfo=UTC if aware else None) + time
    shown = (datetime.min + time).time().isoformat("microseconds" if finer else "auto")
    return f"{day}T{shown}{f'{finer:03}' if finer else ''}{'+00:00' if aware else ''}"
