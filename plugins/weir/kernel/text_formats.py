"""Times in the formats of Spark's patterns, such as dd.MM.yyyy HH:mm: a text is one if writing its
value gives it back."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput

Texts: TypeAlias = pa.ChunkedArray
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _one_of(names: tuple[str, ...], size: int) -> str:
    return f"(?:{'|'.join(name[:size] for name in names)})"


# What a letter of a pattern, so often, matches: exactly what writing the value gives back.
_PARTS = {
    "yyyy": ("year", "[0-9]{4}"), "y": ("year", "[1-9][0-9]{0,3}"), "yy": ("short", "[0-9]{2}"),
    "MMMM": ("name", _one_of(_MONTHS, 9)), "MMM": ("name", _one_of(_MONTHS, 3)),
    "MM": ("month", "[0-9]{2}"), "M": ("month", "[1-9][0-9]?"),
    "dd": ("day", "[0-9]{2}"), "d": ("day", "[1-9][0-9]?"),
    "EEEE": ("weekday", _one_of(_DAYS, 9)),
    **{"E" * size: ("weekday", _one_of(_DAYS, 3)) for size in (1, 2, 3)},
    "HH": ("hour", "(?:[01][0-9]|2[0-3])"), "H": ("hour", "(?:1?[0-9]|2[0-3])"),
    "hh": ("half", "(?:0[1-9]|1[0-2])"), "h": ("half", "(?:[1-9]|1[0-2])"), "a": ("noon", "[AP]M"),
    "mm": ("minute", "[0-5][0-9]"), "m": ("minute", "[1-5]?[0-9]"),
    "ss": ("second", "[0-5][0-9]"), "s": ("second", "[1-5]?[0-9]"),
    **{"S" * size: ("fraction", f"[0-9]{{{size}}}") for size in range(1, 7)},
    **{"S" * size: ("fraction", f"[0-9]{{6}}0{{{size - 6}}}") for size in range(7, 10)},
    "XXX": ("zone", "(?:Z|[+-][0-9]{2}:[0-9]{2})"), "XX": ("zone", "(?:Z|[+-][0-9]{4})"),
    "xxx": ("zone", "[+-][0-9]{2}:[0-9]{2}"), "xx": ("zone", "[+-][0-9]{4}"),
    **{"Z" * size: ("zone", "[+-][0-9]{4}") for size in (1, 2, 3)},
}  # fmt: skip
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)|[\[\]]")


@dataclass(frozen=True)
class Parts:
    """Texts of a format: their days and clocks as ISO 8601 writes them, and the names of weekdays
    and the offsets that they have; null for texts of another format. `weekday`, `zone`: None if
    the format has none; a Z is the offset 0 where `zulu`."""

    day: Texts
    clock: Texts
    weekday: Texts | None = None
    zone: Texts | None = None
    zulu: bool = False


def parts_of(texts: Texts, written: str) -> Parts:
    """Return the parts of texts in a format."""
    pattern, names, zulu = _pattern(written)
    found = pc.extract_regex(texts, pattern)
    there = pc.is_valid(found)

    def part(name: str) -> Texts:
        if name not in names:
            return pc.if_else(there, "00", pa.scalar(None, pa.string()))
        return pc.struct_field(found, name)

    def two(name: str) -> Texts:
        return pc.utf8_lpad(part(name), 2, "0")

    year = pc.utf8_lpad(part("year"), 4, "0")
    if "short" in names:
        year = pc.binary_join_element_wise("20", part("short"), "")
    month = two("month") if "month" in names else _number_of(part("name"))
    hour = _hour(part("half"), part("noon")) if "half" in names else two("hour")
    clock = pc.binary_join_element_wise(hour, two("minute"), two("second"), ":")
    if "fraction" in names:
        fraction = pc.utf8_slice_codeunits(part("fraction"), 0, 6)
        clock = pc.binary_join_element_wise(clock, fraction, ".")
    return Parts(
        pc.binary_join_element_wise(year, month, two("day"), "-"), clock,
        part("weekday") if "weekday" in names else None, part("zone") if "zone" in names else None,
        zulu,
    )  # fmt: skip


def check_format(written: str) -> None:
    """Raise InvalidInput for a format that is not read."""
    if written:
        _pattern(written)


@lru_cache
def _pattern(written: str) -> tuple[str, frozenset[str], bool]:
    """Return a format as a regular expression with names for its parts, these names, and whether
    an offset of 0 is written Z."""
    pattern, names, place, zulu = "", list[str](), 0, False
    for token in _TOKEN.finditer(written):
        if token.start() != place:
            break
        place = token.end()
        quoted, letter, other = token.groups()
        if token[0] in "[]":  # what may be left out is written
            continue
        if letter is None:
            pattern += re.escape(other if quoted is None else quoted.replace("''", "'") or "'")
            continue
        name, digits = _PARTS.get(token[0], ("", ""))
        if not name or name in names:
            raise _not_read(written)
        pattern += f"(?P<{name}>{digits})"
        names.append(name)
        zulu = zulu or token[0].startswith("X")
    given = set(names)
    if (
        place != len(written)
        or "day" not in given
        or len(given & {"year", "short"}) != 1
        or len(given & {"month", "name"}) != 1
        or ("half" in given) != ("noon" in given)
        or {"half", "hour"} <= given
    ):
        raise _not_read(written)
    return f"^{pattern}$", frozenset(names), zulu


def _not_read(written: str) -> InvalidInput:
    return InvalidInput(
        "argument_invalid",
        f"the format {written!r} is not read; write it such as dd.MM.yyyy HH:mm:ss, of yyyy or yy, "
        "MM, MMM or MMMM, dd, E or EEEE, HH or hh with a, mm, ss, S, and XXX, xxx, XX, xx or Z, "
        "each once (y, M, d, H, h, m and s: without a zero before), and other letters in ''.",
    )


def _number_of(names: Texts) -> Texts:
    """Return the numbers of months, of two digits, by the first letters of their names."""
    first = pc.utf8_slice_codeunits(names, 0, 3)
    index = pc.index_in(first, value_set=pa.array([name[:3] for name in _MONTHS]))
    return pc.utf8_lpad(pc.add(index, 1).cast(pa.string()), 2, "0")


def _hour(half: Texts, noon: Texts) -> Texts:
    of_twelve = half.cast(pa.int32())
    hours = pc.if_else(pc.equal(of_twelve, 12), 0, of_twelve)
    hours = pc.if_else(pc.equal(noon, "PM"), pc.add(hours, 12), hours)
    return pc.utf8_lpad(hours.cast(pa.string()), 2, "0")


def weekdays(days: pa.ChunkedArray, like: Texts) -> Texts:
    """Return the names of the weekdays of days, as long as those in `like` are."""
    index = pc.day_of_week(days)
    full = pa.array(_DAYS).take(index.combine_chunks().cast(pa.int64()))
    short = pc.utf8_slice_codeunits(full, 0, 3)
    long = pc.greater(pc.utf8_length(like), 3)
    return pc.if_else(long, pa.chunked_array([full]), pa.chunked_array([short]))


def shown_offsets(offsets: pa.ChunkedArray, like: Texts, *, zulu: bool) -> Texts:
    """Return offsets, in microseconds, as those in `like` are written; null for one with seconds,
    as clocks had before there were zones."""
    minutes = pc.divide(pc.abs(offsets), 60_000_000)
    whole = pc.equal(pc.multiply(minutes, 60_000_000), pc.abs(offsets))
    of_hour = pc.subtract(minutes, pc.multiply(pc.divide(minutes, 60), 60))
    hour, minute = (
        pc.utf8_lpad(one.cast(pa.string()), 2, "0") for one in (pc.divide(minutes, 60), of_hour)
    )
    sign = pc.if_else(pc.less(offsets, 0), "-", "+")
    sign = pc.if_else(whole, sign, pa.scalar(None, pa.string()))
    between = pc.if_else(pc.match_substring(like, ":"), ":", "")
    shown = pc.binary_join_element_wise(sign, hour, between, minute, "")
    return pc.if_else(pc.equal(offsets, 0), "Z", shown) if zulu else shown
