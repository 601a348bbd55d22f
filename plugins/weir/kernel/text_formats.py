"""Times in the formats of Spark's patterns, such as dd.MM.yyyy HH:mm, as far as their parts have a
place of their own in the text."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput
from weir.front_ends import give

# What a letter of a pattern, so often, matches: exactly what writing the value gives back.
_PARTS = {
    "yyyy": ("year", "[0-9]{4}"),
    "MM": ("month", "[0-9]{2}"), "M": ("month", "[1-9][0-9]?"),
    "dd": ("day", "[0-9]{2}"), "d": ("day", "[1-9][0-9]?"),
    "HH": ("hour", "(?:[01][0-9]|2[0-3])"), "H": ("hour", "(?:1?[0-9]|2[0-3])"),
    "mm": ("minute", "[0-5][0-9]"), "m": ("minute", "[1-5]?[0-9]"),
    "ss": ("second", "[0-5][0-9]"), "s": ("second", "[1-5]?[0-9]"),
    **{"S" * size: ("fraction", f"[0-9]{{{size}}}") for size in range(1, 7)},
}  # fmt: skip
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)")


def iso_parts(texts: pa.ChunkedArray, written: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the days and the clocks of texts in a format, as ISO 8601 writes them; null for other
    texts. Raises InvalidInput for a format that only Spark reads."""
    pattern, names = "", []
    place = 0
    for token in _TOKEN.finditer(written):
        if token.start() != place:
            break
        place = token.end()
        quoted, letter, other = token.groups()
        if letter is None:
            pattern += re.escape(other if quoted is None else quoted.replace("''", "'") or "'")
            continue
        if (part := _PARTS.get(token[0])) is None or part[0] in names:
            raise needs_spark(written)
        pattern += f"(?P<{part[0]}>{part[1]})"
        names.append(part[0])
    if place != len(written) or not {"year", "month", "day"} <= set(names):
        raise needs_spark(written)
    found = pc.extract_regex(texts, f"^{pattern}$")

    def two(name: str) -> pa.ChunkedArray:
        if name not in names:
            return pc.if_else(pc.is_valid(found), "00", pa.scalar(None, pa.string()))
        return pc.utf8_lpad(pc.struct_field(found, name), 2, "0")

    day = pc.binary_join_element_wise(pc.struct_field(found, "year"), two("month"), two("day"), "-")
    clock = pc.binary_join_element_wise(two("hour"), two("minute"), two("second"), ":")
    if "fraction" in names:
        clock = pc.binary_join_element_wise(clock, pc.struct_field(found, "fraction"), ".")
    return day, clock


def needs_spark(written: str) -> InvalidInput:
    """Return the error for a format that only Spark reads."""
    return InvalidInput(
        "format_needs_spark",
        f"the format {written!r} has parts that only Spark reads; write it with yyyy, MM, dd, HH, "
        f"mm, ss and S, or {give(engine='spark')}.",
    )
