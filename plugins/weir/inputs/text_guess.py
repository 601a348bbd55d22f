"""Guess the type of a column of texts: one is taken if each text comes back from its value
(docs/decisions/0099). One pass over all rows takes the facts, and these decide."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.text_options import TextOptions
from weir.kernel.text_patterns import CANONICAL, DAY, MINUS_ZERO, PLAIN, SPECIAL, TIMESTAMP, ZONE
from weir.kernel.text_values import matches, number, twice, value
from weir.model.names import shortened
from weir.model.schema import GUESSED, VOID, Field, Kind, new_field

SAMPLE = 2_000  # values
SHOWN = 40  # characters of an example
NUMBER, DATE, TIME, BOOLEAN = "number", "date", "timestamp", "boolean"
KINDS = (NUMBER, DATE, TIME, BOOLEAN)
# Bits that all values of a column must have, and bits that any may have.
LONG, DOUBLE, DECIMAL = 1, 2, 4
WHOLE, POINT_ZERO, FRACTION = 1 << 40, 1 << 41, 1 << 42
ZONED, WITHOUT_ZONE, WITH_T, BLANK, SECONDS, MINUTES, ENDS_IN_ZERO = (
    1 << bit for bit in range(40, 47)
)
SCALES = 38
SURE = 15  # so many digits every double keeps
_LINES = 40  # the most columns whose types are said


@dataclass(frozen=True)
class Facts:
    """About the values of a column: the bits that all have, those that any has, the longest, and an
    example against the type."""

    every: int
    some: int
    longest: int
    example: str | None

    def __add__(self, other: "Facts") -> "Facts":
        examples = [one.example for one in (self, other) if one.example is not None]
        return Facts(
            self.every & other.every, self.some | other.some, max(self.longest, other.longest),
            min(examples, default=None),
        )  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """The type of a column, null if all its values are, and why it has no narrower one."""

    kind: str | None
    why: str = ""


_NUMBERS = rf"^(?:{PLAIN}|{CANONICAL}|{SPECIAL})$"
# What the first values of a column must look like, if it may be of a kind: each that one of its
# types keeps does, or the type would depend on where a part of the file begins.
_LOOKS = {DATE: f"^{DAY}$", TIME: f"^{TIMESTAMP}$", BOOLEAN: "^(?:true|false)$"}
# A text without such a beginning has no reason why it is none of these.
_MAY_BE = re.compile(r"\s*[+-]?(?:[0-9.]|inf|nan)", re.IGNORECASE)


def _looks(kind: str, seen: pa.ChunkedArray, how: TextOptions) -> pa.ChunkedArray:
    """Return which of the first values may be of a kind."""
    if kind == NUMBER:
        plain = seen
        if how.decimal != "." or how.thousands:
            plain = pc.replace_substring(seen, how.thousands, "") if how.thousands else seen
            plain = pc.replace_substring(plain, how.decimal, ".")
        return matches(plain, _NUMBERS)
    formatted = how.date_format if kind == DATE else how.timestamp_format if kind == TIME else ""
    return matches(seen, "[0-9]" if formatted else _LOOKS[kind])


@dataclass(frozen=True)
class Look:
    """What the texts of some rows show. Looks at the parts of a column, in their order, add up to a
    look at the whole. `texts`: how many are no null; `values`: of them, how many are not empty;
    `facts`: of each kind; `kinds`: those that may fit the first values, and `why` none of them
    does; `twice`: a time that the clocks of the zone show twice."""

    rows: int = 0
    texts: int = 0
    values: int = 0
    facts: Mapping[str, Facts] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    why: str = ""
    twice: str = ""

    def __add__(self, other: "Look") -> "Look":
        first = self if self.values or not other.values else other
        facts = {kind: self.facts[kind] + other.facts[kind]
                 for kind in self.facts if kind in other.facts} or first.facts  # fmt: skip
        return Look(
            self.rows + other.rows, self.texts + other.texts, self.values + other.values, facts,
            first.kinds, first.why, self.twice or other.twice,
        )  # fmt: skip


def look(texts: pa.ChunkedArray, how: TextOptions, before: Look | None = None) -> Look:
    """Return what texts of a column show. `before`: what those before them do, which may already
    say that they are not of a kind."""
    given = texts.drop_null()
    there = given.filter(pc.not_equal(given, ""))
    if len(there) == 0:
        return Look(len(texts), len(given))
    seen = there.slice(0, SAMPLE)
    facts, kinds = {}, []
    for kind in KINDS:
        if before is not None and before.values and kind not in before.kinds:
            facts[kind] = Facts(0, 0, 0, None)
            continue
        against = seen.filter(pc.invert(_looks(kind, seen, how)))
        if len(against):
            facts[kind] = Facts(0, 0, 0, against[0].as_py()[:SHOWN])
        else:
            kinds.append(kind)
            facts[kind] = _facts(there, kind, how)
    repeated = ""
    if kinds == [TIME] and how.time_zone != "UTC" and not facts[TIME].every:
        found = there.filter(twice(there, how))
        repeated = found[0].as_py()[:SHOWN] if len(found) else ""
    first = before is None or not before.values
    why = reason(seen.to_pylist(), how) if first and not kinds else ""
    return Look(len(texts), len(given), len(there), facts, tuple(kinds), why, repeated)


def guess(seen: Look, how: TextOptions) -> Guess:
    """Return a guess for a column by all its texts."""
    if not seen.values:
        if not seen.rows:
            return Guess("string", "no rows")
        return Guess("string" if seen.texts else None)
    found = Guess("string", seen.why)
    for kind in seen.kinds:
        if found.kind == "string":
            found = decided(kind, seen.facts[kind], how)
    if found.kind == "string" and seen.kinds == (TIME,) and seen.twice:
        why = f"{seen.twice} is twice in {how.time_zone}, as its clocks are put back"
        return Guess("string", why)
    return found


def _facts(texts: pa.ChunkedArray, kind: str, how: TextOptions) -> Facts:
    """Return the facts about values that are there."""
    longest = pc.max(pc.utf8_length(texts)).as_py()
    every, some, kept = 0, 0, pa.chunked_array([[]], pa.bool_())
    if kind == NUMBER:
        written = number(texts, how)
        other = pc.fill_null(matches(written, "[.eEN]"), True)  # as a whole number never is
        whole = pc.invert(other)
        if _any(whole):
            long = pc.is_valid(value(texts.filter(whole), "long", how, guessed=True))
            whole = pc.replace_with_mask(
                whole.combine_chunks(), whole.combine_chunks(), long.combine_chunks()
            )
        if _all(whole) and longest <= SURE:
            return Facts(LONG | DECIMAL | DOUBLE, WHOLE | 1, longest, None)
        double = pc.is_valid(value(texts, "double", how, guessed=True))
        decimal = pc.and_(
            matches(written, f"^{PLAIN}$"), pc.invert(matches(written, f"^{MINUS_ZERO}$"))
        )
        every = LONG * _all(whole) | DOUBLE * _all(double) | DECIMAL * _all(pc.or_(whole, decimal))
        point = pc.find_substring(written, ".")
        digits = pc.subtract(pc.binary_length(written), pc.add(point, 1))
        fractions = pc.if_else(pc.or_(whole, pc.less(point, 0)), 0, digits)
        for size in pc.unique(fractions.drop_null()).to_pylist():
            some |= 1 << min(size, SCALES)
        rest = written.filter(pc.invert(whole))
        some |= WHOLE * _any(whole) | POINT_ZERO * _any(pc.ends_with(rest, ".0"))
        some |= FRACTION * _any(pc.and_(other, pc.is_valid(written)))
        kept = pc.or_(whole, double)
    else:
        kept = pc.is_valid(value(texts, kind, how, guessed=True))
        every = int(_all(kept))
        some = _shapes(texts) if kind == TIME else 0
    against = texts.filter(pc.invert(pc.fill_null(kept, False)))
    least = pc.min(pc.utf8_slice_codeunits(against, 0, SHOWN)).as_py()
    return Facts(every, some, longest, least)


def _shapes(texts: pa.ChunkedArray) -> int:
    """Return the bits of the ways in which times are written."""
    zoned = matches(texts, ZONE + "$")
    local = pc.replace_substring_regex(texts, f" ?{ZONE}$", "") if _any(zoned) else texts
    point = pc.find_substring(local, ".")
    fractions = pc.if_else(
        pc.less(point, 0), 0, pc.subtract(pc.binary_length(local), pc.add(point, 1))
    )
    some = 0
    for size in pc.unique(fractions.drop_null()).to_pylist():
        some |= 1 << min(size, SCALES)
    tests = (
        (zoned, ZONED, WITHOUT_ZONE),
        (pc.match_substring(texts, "T"), WITH_T, BLANK),
        (pc.greater(pc.count_substring(local, ":"), 1), SECONDS, MINUTES),
        (pc.and_(pc.greater(fractions, 0), pc.ends_with(local, "0")), ENDS_IN_ZERO, 0),
    )
    for test, yes, no in tests:
        some |= yes * _any(test) | no * (not _all(test))
    return some


def _all(test: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.fill_null(test, False)).as_py())


def _any(test: pa.ChunkedArray) -> bool:
    return bool(pc.any(test).as_py())


def decided(kind: str, facts: Facts, how: TextOptions) -> Guess:
    if kind == NUMBER:
        return _number(facts, how)
    if not facts.every & 1:
        return Guess("string", reason([facts.example], how))
    if kind == TIME and not how.timestamp_format:
        return _time(facts, how)
    return Guess(kind, f"as {how.date_format}" if kind == DATE and how.date_format else "")


def _number(facts: Facts, how: TextOptions) -> Guess:
    every, some = facts.every, facts.some
    scales = [s for s in range(SCALES + 1) if some >> s & 1]
    mixed = bool(some & WHOLE and some & POINT_ZERO)
    if every & LONG:
        return Guess("long")
    if every & DOUBLE and some & FRACTION and not mixed:
        return Guess("double")
    longest = facts.longest
    if every & DECIMAL and len(scales) == 1 and longest <= 38:
        scale = scales[0]
        precision = 18 if longest <= 18 and scale <= 15 else 38
        why = f"{facts.example} would become another text as a double" if facts.example else ""
        return Guess(f"decimal({precision},{scale})", why)
    if mixed and not facts.example:
        return Guess("string", "whole numbers are written in two ways, such as 3 and 3.0")
    return Guess("string", reason([facts.example] if facts.example else [], how))


def _time(facts: Facts, how: TextOptions) -> Guess:
    some = facts.some
    lengths = [n for n in range(20) if some >> n & 1]
    pairs = ((ZONED, WITHOUT_ZONE), (WITH_T, BLANK), (SECONDS, MINUTES))
    mixed = any(some & a and some & b for a, b in pairs)
    same = len(lengths) == 1 or not some & ENDS_IN_ZERO or lengths == [0, 6]
    if mixed or not same:
        return Guess("string", "times are written in several ways")
    if some & ZONED:
        return Guess("timestamp")
    return Guess("timestamp", f"without a zone, read as {how.time_zone} (time_zone says otherwise)")


def reason(texts: Sequence[str | None], how: TextOptions) -> str:
    """Return what a type would do to one of the texts, if it looks like a value of that type."""
    for text in texts:
        if text is None or not _MAY_BE.match(text):
            continue
        shown = text[:SHOWN]
        if re.match(r"^\s*[+-]?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", text):
            return f"{shown} is a time without a day"
        if re.fullmatch(TIMESTAMP, text) and re.search(ZONE + "$", text):
            return f"{shown} would lose its offset as a timestamp"
        if re.match(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            if re.search(r"\.[0-9]{6}0*[1-9]", text):
                return f"{shown} has more digits than microseconds"
            return f"{shown} is no date or time that would come back"
        if re.match(r"^[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}", text):
            return f"{shown} may be a day: date_format or timestamp_format says how to read it"
        if re.match(r"^[+-]?[0-9.]*,[0-9]+$", text) and how.decimal == ".":
            return f"{shown} may be a number: decimal says how to read it"
        try:
            back = _shown_back(text)
        except (ValueError, OverflowError):
            if re.match(r"^[+-]?[0-9.]+[dDfFlL]$", text):
                return f"{shown} would become {text[:-1]} as a number"
            continue
        if back != text:
            return f"{shown} would become {back} as a number"
    return ""


def _shown_back(text: str) -> str:
    plain = text.strip().replace("_", "")
    if re.fullmatch(r"[+-]?[0-9]+", plain):
        return str(int(plain))
    return repr(float(plain))


def field_of(name: str, kind: Kind) -> Field:
    """Return a column of a type that was guessed."""
    metadata = {} if kind in (VOID, "string") else {GUESSED: True}
    return {**new_field(name, kind), "metadata": metadata}


def lines_of(found: dict[str, Guess]) -> list[str]:
    """Return a line per column: its name, its type, and why."""
    lines = []
    for name, one in list(found.items())[:_LINES]:
        kind = one.kind or "left open, because all its values are null"
        lines.append(f"  {shortened(name, 60)[1:-1]}: {kind}{f' ({one.why})' if one.why else ''}")
    if len(found) > _LINES:
        lines.append(f"  ... and {len(found) - _LINES:,} more columns")
    return lines
