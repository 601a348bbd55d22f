"""Values of columns of texts: each says exactly what its text says, or there is none (semantics
12.3).

Of a column of csv files whose type was guessed, the text itself must come back from the value.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.schema import arrow_type
from weir.kernel.text_formats import parts_of, shown_offsets, weekdays
from weir.kernel.text_options import TextOptions
from weir.kernel.text_patterns import CANONICAL, DAY, INFINITE, MINUS_ZERO, NUMBER, SPECIAL

T = TypeVar("T")
Texts: TypeAlias = pa.ChunkedArray
INTEGERS = ("byte", "short", "integer", "long")
# RE2's `$` is the end of the text, and nothing else.
_SHORT = r"^(?:0|-?[1-9][0-9]{0,17})$"
_MOST, _LEAST = "9223372036854775807", "-9223372036854775808"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
_ZONE = r"(?:Z|[+-](?:(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|18(?::?00)?))"
_INSTANT = rf"^(?P<day>{DAY})(?:[ T](?P<clock>{_CLOCK}) ?(?P<zone>{_ZONE})?)?$"
_TEXT, _MINUTE, _DAY_LENGTH = pa.string(), 60_000_000, 86_400_000_000
_INSTANTS, _MICROSECOND = pa.timestamp("us", "UTC"), timedelta(microseconds=1)
_LATE = datetime(2037, 1, 1)  # after that year pyarrow knows no change of the clocks
_YEAR_1 = -62_135_596_800_000_000  # in microseconds; there is no year 0


def value(texts: Texts, kind: str, how: TextOptions, *, guessed: bool = False) -> Texts:
    """Return the values of texts in a type of Spark, null for a text that the type can't keep.
    `guessed`: the text itself must come back."""
    if kind in INTEGERS:
        return _integers(number(texts, how), kind)
    if kind in ("double", "float"):
        return _approximate(number(texts, how), kind, guessed)
    if kind.startswith("decimal"):
        return _decimals(number(texts, how), kind, guessed)
    if kind == "boolean":
        shown = texts if guessed else pc.utf8_lower(texts)
        true = pc.equal(shown, "true")
        return _where(pc.or_(true, pc.equal(shown, "false")), true)
    if kind == "date":
        return _days(texts, how.date_format) if how.date_format else _dates(texts)
    if kind == "timestamp":
        return _times(texts, how, guessed)[0]
    if kind == "timestamp_ntz":
        return _local_times(texts, how)
    return texts.cast(pa.binary()) if kind == "binary" else texts


def twice(texts: Texts, how: TextOptions) -> pa.ChunkedArray:
    """Return which texts of times are of an hour that the clocks of the zone pass twice."""
    return _times(texts, how, guessed=False)[1]


def number(texts: Texts, how: TextOptions) -> Texts:
    """Return the texts of numbers with a decimal point and without separators of thousands, null
    if one is not written in that way."""
    if how.decimal == "." and not how.thousands:
        return texts
    point, group = re.escape(how.decimal), re.escape(how.thousands)
    whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)" if group else "[0-9]+"
    written = matches(texts, rf"^-?{whole}(?:{point}[0-9]+)?(?:[eE][+-]?[0-9]+)?$")
    plain = pc.replace_substring(texts, how.thousands, "") if how.thousands else texts
    plain = pc.replace_substring(plain, how.decimal, ".")
    return _where(
        pc.or_(written, matches(texts, f"^{INFINITE}$")), pc.if_else(written, plain, texts)
    )


def matches(texts: Texts, pattern: str) -> pa.ChunkedArray:
    """Return which texts match a pattern; null for null."""
    return pc.match_substring_regex(texts, pattern)


def digits(texts: Texts) -> Texts:
    """Return the digits of numbers that count: without sign, point, exponent, and outer zeros."""
    return pc.utf8_trim(pc.replace_substring_regex(texts, "[eE].*|[^0-9]", ""), "0")


def _where(test: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.fill_null(test, False), values, pa.scalar(None, values.type))


def _integers(plain: Texts, kind: str) -> Texts:
    try:  # mostly, and in a tenth of the time
        found = plain.cast(pa.int64())
        found = _where(pc.equal(found.cast(_TEXT), plain), found)
    except pa.ArrowInvalid:
        kept = matches(plain, _SHORT)
        for pattern, most in ((r"^[1-9][0-9]{18}$", _MOST), (r"^-[1-9][0-9]{18}$", _LEAST)):
            kept = pc.or_(kept, pc.and_(matches(plain, pattern), pc.less_equal(plain, most)))
        found = _where(kept, plain).cast(pa.int64())
    if kind == "long":
        return found
    low, high = {"byte": 7, "short": 15, "integer": 31}[kind], 0
    low, high = -(1 << low), (1 << low) - 1
    inside = pc.and_(pc.greater_equal(found, low), pc.less_equal(found, high))
    return _where(inside, found).cast(arrow_type(kind))


def _approximate(plain: Texts, kind: str, guessed: bool) -> Texts:
    wanted = arrow_type(kind)
    try:  # mostly, and in a tenth of the time: whatever pyarrow writes as the same text
        found = plain.cast(wanted)
        same = pc.and_(pc.equal(found.cast(_TEXT), plain), pc.is_finite(found))
        rest = pc.invert(pc.fill_null(same, True))
        if not pc.any(rest).as_py():
            return found
        others = _by_digits(plain.filter(rest), wanted, guessed)
        parts = (one.combine_chunks() for one in (found, rest, others))
        return pa.chunked_array([pc.replace_with_mask(*parts)])
    except pa.ArrowInvalid:
        return _by_digits(plain, wanted, guessed)


def _by_digits(plain: Texts, wanted: pa.DataType, guessed: bool) -> Texts:
    special = matches(plain, f"^{SPECIAL if guessed else INFINITE}$")
    written = _where(matches(plain, f"^{CANONICAL if guessed else NUMBER}$"), plain)
    try:
        found = written.cast(wanted)
    except pa.ArrowInvalid:  # of an exponent that no double has
        found = _each(written, float, pa.float64()).cast(wanted)
    found = _where(pc.equal(digits(found.cast(_TEXT)), digits(written)), found)
    if not pc.any(special).as_py():
        return found
    shown = pc.replace_substring_regex(pc.utf8_lower(_where(special, plain)), "inity$", "")
    return pc.if_else(pc.fill_null(special, False), shown.cast(wanted), found)


def _decimals(plain: Texts, kind: str, guessed: bool) -> Texts:
    wanted = arrow_type(kind)
    size, scale = wanted.precision - wanted.scale, wanted.scale
    whole = rf"(?:0|[1-9][0-9]{{0,{size - 1}}})" if size else "0"
    if guessed:
        fraction = rf"\.[0-9]{{{scale}}}" if scale else ""
        kept = matches(plain, f"^-?{whole}{fraction}$")
        kept = pc.and_(kept, pc.invert(matches(plain, f"^{MINUS_ZERO}$")))
        return _where(kept, plain).cast(wanted)
    # Zeros after the last decimal are dropped, and only these: `10` has none.
    trimmed = pc.replace_substring_regex(plain, rf"^(-?[0-9]+\.[0-9]{{{scale}}})0+$", r"\1")
    shape = f"^-?{whole}" + (rf"(?:\.[0-9]{{1,{scale}}})?$" if scale else r"(?:\.0*)?$")
    fits = pc.and_(matches(trimmed, shape), pc.invert(pc.ends_with(plain, ".")))
    whole_only = trimmed if scale else pc.replace_substring_regex(trimmed, r"\..*", "")
    found = _where(fits, whole_only).cast(wanted)
    exponent = pc.and_(matches(plain, f"^{NUMBER}$"), matches(plain, "[eE]"))
    if not pc.any(exponent).as_py():
        return found
    more = _each(_where(exponent, plain), partial(_decimal, wanted=wanted), wanted)
    return pc.coalesce(found, more)


def _decimal(text: str, wanted: pa.DataType) -> Decimal | None:
    context = Context(prec=wanted.precision, traps=[Inexact, InvalidOperation])
    try:
        found = context.create_decimal(text).quantize(
            Decimal(1).scaleb(-wanted.scale), context=context
        )
    except (Inexact, InvalidOperation):
        return None
    return found


def _each(texts: Texts, convert: Callable[[T], object], kind: pa.DataType) -> pa.ChunkedArray:
    """Return a value for each text, which is computed once for texts that are equal."""
    known = texts.unique().drop_null().to_pylist()
    values = {text: convert(text) for text in known}
    found = [None if text is None else values[text] for text in texts.to_pylist()]
    return pa.chunked_array([found], kind)


def _dates(texts: Texts) -> pa.ChunkedArray:
    written = pc.and_(matches(texts, f"^{DAY}$"), pc.invert(pc.starts_with(texts, "0000")))
    given = _where(written, texts)
    try:
        return given.cast(pa.date32())
    except pa.ArrowInvalid:
        return _each(given, _date, pa.date32())


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _days(texts: Texts, written: str) -> pa.ChunkedArray:
    """Return the days of texts in a format. A time of day, or a zone, would not come back."""
    parts = parts_of(texts, written)
    days = _where(matches(parts.clock, "^[0:.]*$"), _dates(parts.day))
    if parts.weekday is not None:
        days = _where(pc.equal(weekdays(days, parts.weekday), parts.weekday), days)
    return days if parts.zone is None else _where(pc.is_null(texts), days)


def _parts(texts: Texts) -> tuple[Texts, Texts, Texts]:
    """Return the texts of day, clock and zone; null in all where they are no time."""
    shorter = pc.replace_substring_regex(texts, r"(\.[0-9]{6})0+", r"\1")
    found = pc.extract_regex(shorter, _INSTANT)
    return tuple(pc.struct_field(found, name) for name in ("day", "clock", "zone"))


def _local(day: Texts, clock: Texts) -> pa.ChunkedArray:
    """Return microseconds since 1970 in whatever zone; null where there is no such day."""
    days = pc.multiply(_dates(day).cast(pa.int32()).cast(pa.int64()), _DAY_LENGTH)
    full = pc.if_else(pc.equal(clock, ""), "00:00", clock)
    at = pc.binary_join_element_wise("1970-01-01", full, " ").cast(pa.timestamp("us"))
    return pc.add(days, at.cast(pa.int64())).cast(pa.timestamp("us"))


def _times(
    texts: Texts, how: TextOptions, guessed: bool
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the instants of texts, and which of them are of an hour that is twice; null where the
    text is none."""
    if how.timestamp_format:
        return _formatted(texts, how)[:2]
    if (plain := _plain_times(texts)) is not None:
        return _instants(plain, how.time_zone)
    day, clock, zone = _parts(texts)
    if guessed:  # a day alone is no time
        day = _where(pc.not_equal(clock, ""), day)
    local, bare = _local(day, clock), pc.equal(zone, "")
    first, last = _shown_at(local, how.time_zone)
    here = _where(pc.equal(first, last), first)
    repeated = pc.and_(pc.fill_null(pc.not_equal(first, last), False), pc.fill_null(bare, False))
    if pc.all(pc.fill_null(bare, True)).as_py():
        return here, repeated
    instants = pc.subtract(local.cast(pa.int64()), _offsets(zone)).cast(_INSTANTS)
    if guessed:
        full = pc.and_(
            matches(zone, "^(?:Z|.[0-9]{2}:?[0-9]{2})$"), pc.invert(matches(zone, "-00:?00"))
        )
        shown = pc.or_(pc.equal(instants, first), pc.equal(instants, last))
        instants = _where(pc.and_(full, shown), instants)
    return pc.if_else(bare, here, instants), repeated


def _plain_times(texts: Texts) -> pa.ChunkedArray | None:
    """Return the times of texts that pyarrow writes in the same way; None if one is another text.
    That takes a fifth of the time of a pattern."""
    for unit in ("s", "ms", "us"):
        with suppress(pa.ArrowInvalid):
            found = texts.cast(pa.timestamp(unit))
            local = found.cast(pa.timestamp("us"))
            same = pc.equal(found.cast(_TEXT), texts)
            same = pc.and_(same, pc.greater_equal(local.cast(pa.int64()), _YEAR_1))
            if pc.all(pc.fill_null(same, True)).as_py():
                return local
    return None


def _instants(local: pa.ChunkedArray, time_zone: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the instants at which the clocks of a zone show times, null for a time that they leave
    out or show twice; and which are shown twice."""
    first, last = _shown_at(local, time_zone)
    once = pc.equal(first, last)
    return _where(once, first), pc.fill_null(pc.invert(once), False)


def _shown_at(local: pa.ChunkedArray, time_zone: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the first and the last instant at which the clocks of a zone show times, null for a
    time that they leave out."""
    if time_zone == "UTC":
        return (local.cast(_INSTANTS),) * 2
    first, last = (
        pc.assume_timezone(local, time_zone, ambiguous=which, nonexistent=which)
        for which in ("earliest", "latest")
    )
    there = pc.equal(pc.local_timestamp(first), local)
    late = pc.fill_null(pc.greater_equal(local, pa.scalar(_LATE)), False)
    if pc.any(late).as_py():
        first, last = (
            pc.if_else(late, _late(_where(late, local), time_zone, fold), one.cast(_INSTANTS))
            for fold, one in enumerate((first, last))
        )
        there = pc.if_else(late, pc.less_equal(first, last), there)
    return _where(there, first).cast(_INSTANTS), _where(there, last).cast(_INSTANTS)


def _late(local: pa.ChunkedArray, time_zone: str, fold: int) -> pa.ChunkedArray:
    """Return the instants of times by the rule that a zone has from some year on."""
    zone = ZoneInfo(time_zone)

    def offset(at: datetime) -> int:
        return (at.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()) // _MICROSECOND

    offsets = _each(local, offset, pa.int64())
    return pc.subtract(local.cast(pa.int64()), offsets).cast(_INSTANTS)


def _formatted(
    texts: Texts, how: TextOptions
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, pa.ChunkedArray]:
    """Return what `_times` does of texts in a format, and the times of the clocks. A weekday must
    be that of the day, and an offset the one that the zone has at the time."""
    parts = parts_of(texts, how.timestamp_format)
    local = _local(parts.day, parts.clock)
    if parts.weekday is not None:
        days = local.cast(pa.date32(), safe=False)
        local = _where(pc.equal(weekdays(days, parts.weekday), parts.weekday), local)
    found, repeated = _instants(local, how.time_zone)
    if parts.zone is None:
        return found, repeated, local
    offsets = pc.subtract(local.cast(pa.int64()), found.cast(pa.int64()))
    shown = shown_offsets(offsets, parts.zone, zulu=parts.zulu)
    return _where(pc.equal(shown, parts.zone), found), repeated, local


def _offsets(zone: Texts) -> pa.ChunkedArray:
    """Return the microseconds by which clocks in a zone, such as +02:00, are ahead."""
    plain = pc.replace_substring(zone, ":", "")
    given = matches(plain, "^[+-]")
    whole = pc.if_else(given, plain, "+0000")
    hours = pc.utf8_slice_codeunits(whole, 1, 3).cast(pa.int64())
    rest = pc.utf8_slice_codeunits(whole, 3, 5)
    minutes = pc.if_else(pc.equal(rest, ""), "0", rest).cast(pa.int64())
    size = pc.multiply(pc.add(pc.multiply(hours, 60), minutes), _MINUTE)
    return pc.if_else(pc.starts_with(whole, "-"), pc.negate(size), size)


def _local_times(texts: Texts, how: TextOptions) -> pa.ChunkedArray:
    if how.timestamp_format:
        found, _, local = _formatted(texts, how)
        return _where(pc.is_valid(found), local)
    day, clock, zone = _parts(texts)
    blank = pc.or_(pc.not_equal(zone, ""), pc.ends_with(texts, " "))
    return _where(pc.invert(blank), _local(day, clock))
