"""What each transform of a column makes of its values."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput
from weir.kernel.comparisons import FARTHEST_DAY, compared, is_exact
from weir.kernel.event_time import times_of, times_of_texts
from weir.kernel.key_texts import as_texts
from weir.kernel.row_hash import hashes_of_texts
from weir.kernel.schema import arrow_type, from_arrow
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value
from weir.model.declared_columns import declared_columns
from weir.model.key_space import STEPS
from weir.model.schema import show
from weir.model.transform_nodes import Call

Values: TypeAlias = pa.ChunkedArray
Mask: TypeAlias = pa.ChunkedArray
_NAMED = {"int": "int", "bigint": "bigint", "string": "string"}
_PARTS = {"year": pc.year, "month": pc.month, "day": pc.day, "hour": pc.hour, "minute": pc.minute}
_MOST_BUCKETS, _LONGEST_TEXT = 1_000_000, 1_000_000
INSTANT, _LOCAL, _DAY = pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()


class Unfit(Exception):
    """A transform does not fit the type of its column."""


class Outcome(NamedTuple):
    """What was computed of rows: a value for each, and which of them fail; None if none does."""

    values: Values
    failed: Mask | None = None


def made(node: Call, of: Values, options: Sequence[str | Decimal | bool]) -> Outcome:
    """Return what a transform of one column makes."""
    name = node.name
    if pa.types.is_null(of.type):  # no value has shown the type of the column
        return Outcome(of)
    if name == "cast":
        return _cast(of, str(options[0]))
    if name in _NAMED:
        return _cast(of, _NAMED[name])
    if name in _PARTS:
        given = _as_time(of, whole_days=name in ("year", "month", "day"))
        return Outcome(_PARTS[name](given.values).cast(pa.int32()), given.failed)
    if name in ("date", "to_date"):
        return day(of, *map(str, options))
    if name in ("timestamp", "to_timestamp"):
        return instant(of, *map(str, options))
    if name in ("timestamp_millis", "timestamp_micros"):
        return _instant_of(of, 1000 if name == "timestamp_millis" else 1)
    if name == "bucket":
        return Outcome(_buckets(texts_of(of), _number(options[0], 1, _MOST_BUCKETS)))
    if name == "truncate":
        return _truncated(of, _number(options[0], 1, _LONGEST_TEXT))
    if name == "like":
        if not pa.types.is_string(of.type):
            raise Unfit(f"LIKE takes texts, and not {shown(of.type)}")
        return Outcome(pc.match_like(of, str(options[0])))
    texts = texts_of(of)
    if name == "left":
        found = pc.utf8_slice_codeunits(texts, 0, _number(options[0], 0, _LONGEST_TEXT))
    elif name == "substring":
        begin = _number(options[0], 1, _LONGEST_TEXT) - 1
        length = _number(options[1], 0, _LONGEST_TEXT)
        found = pc.utf8_slice_codeunits(texts, begin, begin + length)
    elif name == "trim":
        found = pc.utf8_trim(texts, " ")
    else:
        found = _cased(texts, name)
    return Outcome(found)


def _cased(texts: Values, name: str) -> Values:
    """Return texts in lower or upper case, as Unicode has it: a letter may become two."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return pc.ascii_lower(texts) if name == "lower" else pc.ascii_upper(texts)
    known = texts.unique().drop_null().to_pylist()
    change = str.lower if name == "lower" else str.upper
    changed = pa.array([change(one) for one in known], pa.string())
    return changed.take(pc.index_in(texts, value_set=pa.array(known, pa.string())))


def texts_of(of: Values) -> Values:
    try:
        return as_texts(of)
    except TypeError:
        raise Unfit(
            f"{shown(of.type)} has no text that stays the same in all versions; take a column of "
            "texts, whole numbers, decimals, dates, times or truths"
        ) from None


def _cast(of: Values, written: str) -> Outcome:
    fields = declared_columns(f"value {written}", "type")
    if len(fields) > 1:
        raise Unfit(f"{written} is no type")
    kind = fields[0]["type"]
    wanted = arrow_type(kind)
    if of.type == wanted:
        return Outcome(of)
    if wanted == pa.string():
        return Outcome(texts_of(of))
    if kind == "date":
        return day(of)
    if kind in ("timestamp", "timestamp_ntz"):
        found = instant(of)
        return Outcome(found.values.cast(wanted), found.failed)
    if pa.types.is_floating(of.type) and pa.types.is_floating(wanted):
        return Outcome(of.cast(wanted, safe=False))
    if kind == "boolean" and is_exact(of.type):
        return Outcome(compared("!=", of, pa.scalar(0)))
    if pa.types.is_boolean(of.type) and kind != "boolean":
        of = of.cast(pa.int8())
    if not isinstance(kind, str) or pa.types.is_temporal(of.type) or kind in ("variant", "binary"):
        raise Unfit(f"{shown(of.type)} can't become {written}")
    return _checked(of, value(pc.utf8_trim(texts_of(of), " "), kind, TextOptions()))


def _checked(given: Values, found: Values) -> Outcome:
    """Return values that fail where something was given and nothing was found."""
    failed = pc.and_(pc.is_valid(given), pc.is_null(found))
    return Outcome(found, failed if pc.any(failed).as_py() else None)


def _as_time(of: Values, *, whole_days: bool) -> Outcome:
    if pa.types.is_timestamp(of.type):
        return Outcome(of.cast(_LOCAL))
    if pa.types.is_date32(of.type) or pa.types.is_string(of.type):
        if whole_days:
            return day(of)
        found = instant(of)
        return Outcome(found.values.cast(_LOCAL), found.failed)
    raise Unfit(f"{shown(of.type)} is no time")


def day(of: Values, written: str = "") -> Outcome:
    if pa.types.is_date32(of.type):
        return Outcome(of)
    if pa.types.is_timestamp(of.type):
        return Outcome(pc.floor_temporal(of.cast(_LOCAL), unit="day").cast(pa.date32()))
    if not pa.types.is_string(of.type):
        raise Unfit(f"{shown(of.type)} is no date")
    if written:
        return _checked(of, value(of, "date", TextOptions(date_format=written)))
    is_time = pc.is_valid(times_of_texts(of))
    written = pc.utf8_slice_codeunits(pc.utf8_trim(of, " "), 0, 10)  # whatever the zone
    return _checked(of, pc.if_else(is_time, written, pa.scalar(None, pa.string())).cast(_DAY))


def instant(of: Values, written: str = "") -> Outcome:
    if pa.types.is_timestamp(of.type) and not written:
        return Outcome(of)
    if pa.types.is_date32(of.type) and not written:
        near = pc.less_equal(pc.abs(of.cast(pa.int32()).cast(pa.int64())), FARTHEST_DAY)
        kept = pc.if_else(near, of, pa.scalar(None, _DAY))
        return _checked(of, kept.cast(_LOCAL).cast(INSTANT))
    if written:
        if not pa.types.is_string(of.type):
            raise Unfit(f"a format is that of texts, and not of {shown(of.type)}")
        return _checked(of, value(of, "timestamp", TextOptions(timestamp_format=written)))
    if pa.types.is_string(of.type):
        return _checked(of, times_of_texts(of).cast(INSTANT))
    try:
        return _checked(of, times_of(of).cast(INSTANT))
    except TypeError:
        raise Unfit(f"{shown(of.type)} is no time") from None


def _instant_of(of: Values, unit: int) -> Outcome:
    """Return the instants that are so many units, of `unit` microseconds, after 1970."""
    if not pa.types.is_integer(of.type):
        raise Unfit(f"it takes whole numbers, and not {shown(of.type)}")
    whole = of.cast(pa.int64())
    most = (1 << 63) // unit - 1
    inside = pc.and_(pc.greater_equal(whole, -most), pc.less_equal(whole, most))
    near = pc.if_else(inside, whole, pa.scalar(None, pa.int64()))
    return _checked(of, pc.multiply(near, unit).cast(INSTANT))


def _buckets(texts: Values, buckets: int) -> Values:
    """Return the number of each text's part of the key space, of so many equal ones."""
    parts = []
    for chunk in texts.chunks or [pa.array([], pa.string())]:
        places = (hashes_of_texts(chunk) >> np.uint64(11)).astype(np.float64) / STEPS
        found = pa.array(np.floor(places * buckets).astype(np.int32))
        parts.append(pc.if_else(pc.is_valid(chunk), found, pa.scalar(None, pa.int32())))
    return pa.chunked_array(parts, pa.int32())


def _truncated(of: Values, width: int) -> Outcome:
    """Return the first characters of texts, or numbers without what exceeds a multiple."""
    if pa.types.is_string(of.type):
        return Outcome(pc.utf8_slice_codeunits(of, 0, width))
    if not pa.types.is_integer(of.type):
        raise Unfit(f"truncate takes texts or whole numbers, and not {shown(of.type)}")
    lows = []
    for chunk in of.chunks:
        given = pc.fill_null(chunk.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        found = pa.array(given - np.mod(given, width))
        inside = pc.and_(pc.is_valid(chunk), pc.less_equal(found, pa.array(given)))
        lows.append(pc.if_else(inside, found, pa.scalar(None, pa.int64())))
    low = pa.chunked_array(lows, pa.int64())
    least = pa.scalar(_least(of.type), pa.int64())
    low = pc.if_else(pc.greater_equal(low, least), low, pa.scalar(None, pa.int64()))
    return _checked(of, low.cast(of.type))


def _least(kind: pa.DataType) -> int:
    return -(1 << (int(kind.bit_width) - 1))


def _number(given: str | Decimal | bool, low: int, high: int) -> int:
    assert not isinstance(given, str), given
    if not low <= given <= high:
        raise Unfit(f"{given} is not from {low:,} to {high:,}")
    return int(given)


def shown(kind: pa.DataType) -> str:
    try:
        return show(from_arrow(pa.schema([pa.field("value", kind)]))[0]["type"])
    except InvalidInput:
        return str(kind)
