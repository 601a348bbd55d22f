"""Guess the types of columns of texts: a type is taken if each text of the column comes back from
its value (docs/decisions/0049).

The first rows say which kind of type may fit. If they suggest one type, a pass with a cheap test
proves it for all rows. A pass that takes all facts decides the other columns.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from weir.spark.inputs.likely_types import Likely, likely
from weir.spark.inputs.text_options import TextOptions
from weir.spark.inputs.text_values import CANONICAL, END, TIMESTAMP, ZONE, number, value

SAMPLE = 2_000  # rows
_AT_ONCE = 250  # columns that one pass decides
_SHOWN = 40  # characters of an example
NUMBER, DATE, TIME, BOOLEAN = "number", "date", "timestamp", "boolean"
_KINDS = (NUMBER, DATE, TIME, BOOLEAN)
# Bits that all values of a column must have, and bits that any may have.
_LONG, _DOUBLE, _DECIMAL = 1, 2, 4
_WHOLE, _POINT_ZERO, _FRACTION = 1 << 40, 1 << 41, 1 << 42
_ZONED, _LOCAL, _T, _BLANK, _SECONDS, _MINUTES, _ENDS_IN_ZERO, _COLON = (
    1 << bit for bit in range(40, 48)
)
_SCALES = 38
_PLAIN = r"^(?!-0(?:\.0*)?$)-?(?:0|[1-9][0-9]*)(?:\.[0-9]{1,38})?" + END


@dataclass(frozen=True)
class Guess:
    """The type of a column, null if all its values are, and why it has no narrower one."""

    kind: str | None
    why: str = ""


def guess(rows: DataFrame, texts: Sequence[Column], how: TextOptions) -> list[Guess]:
    """Return a guess for each text, which are columns of `rows`. Without rows all are strings."""
    names = [f"c{i}" for i in range(len(texts))]
    frame = rows.select(*[text.alias(name) for text, name in zip(texts, names, strict=True)])
    sample = frame.limit(SAMPLE).collect()
    if not sample:
        return [Guess("string", "no rows")] * len(texts)
    found: list[Guess | None] = []
    asked: list[tuple[int, str]] = []  # a column, and a kind that may fit
    suggested: dict[int, Likely] = {}
    for i in range(len(names)):
        seen = [row[i] for row in sample if row[i] not in (None, "")]
        empty = any(row[i] == "" for row in sample)
        kinds = [kind for kind in _KINDS if _may_be(kind, seen, how)]
        asked += [(i, kind) for kind in kinds]
        if len(kinds) == 1 and (one := likely(kinds[0], seen, how)) is not None:
            suggested[i] = one
        if kinds:
            found.append(None)
        else:
            found.append(Guess("string", _reason(seen, how) if seen else ""))
        if empty and not seen:
            found[i] = None
    proved = _proved(frame, names, suggested)
    for i in proved:
        found[i] = Guess(suggested[i].kind, suggested[i].why)
    asked = [one for one in asked if one[0] not in proved]
    for start in range(0, len(asked), _AT_ONCE):
        some = asked[start : start + _AT_ONCE]
        columns = [F.struct(*_facts(n, kind, how)) for n, (_, kind) in enumerate(some)]
        facts = (
            _looked_at(frame, names, some, how)
            .agg(*[column.alias(f"f{j}") for j, column in enumerate(columns)])
            .first()
        )
        assert facts is not None  # an aggregate without groups has one row
        for (i, kind), one in zip(some, facts, strict=True):
            if one.values == 0:
                found[i] = found[i] or Guess("string" if one.empties else None)
                continue
            decided = _decided(kind, one, how)
            if found[i] is None or found[i].kind in (None, "string"):  # type: ignore[union-attr]
                found[i] = decided
    return [one or Guess("string") for one in found]


def _proved(frame: DataFrame, names: Sequence[str], suggested: dict[int, Likely]) -> set[int]:
    """Return the columns in which each text that is not empty proves the type suggested."""
    proved: set[int] = set()
    wanted = list(suggested)
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        against = [
            (F.col(names[i]) != "")
            & ~F.coalesce(suggested[i].proves(F.col(names[i])), F.lit(False))
            for i in some
        ]
        row = frame.agg(
            *[F.count_if(test).alias(f"n{i}") for i, test in zip(some, against, strict=True)]
        ).first()
        assert row is not None  # an aggregate without groups has one row
        proved |= {i for i, count in zip(some, row, strict=True) if count == 0}
    return proved


def _may_be(kind: str, seen: Sequence[str], how: TextOptions) -> bool:
    """Return whether a kind may fit the values that were seen first."""
    return all(_looks(kind, text, how) for text in seen)


def _looks(kind: str, text: str, how: TextOptions) -> bool:
    if kind == NUMBER:
        plain = text
        if how.decimal != "." or how.thousands:
            plain = text.replace(how.thousands or "\0", "").replace(how.decimal, ".")
        return bool(re.match(_PLAIN, plain) or re.match(CANONICAL, plain)) or plain in (
            "NaN", "Infinity", "-Infinity",
        )  # fmt: skip
    if kind == DATE:
        if how.date_format:
            return any(c.isdigit() for c in text)
        return bool(re.match(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", text))
    if kind == TIME:
        if how.timestamp_format:
            return any(c.isdigit() for c in text)
        return bool(re.match(TIMESTAMP, text))
    return text in ("true", "false")


def _looked_at(
    frame: DataFrame, names: Sequence[str], asked: Sequence[tuple[int, str]], how: TextOptions
) -> DataFrame:
    """Return for each column that is asked about its values (`t`), and whether its type keeps them
    (`w`, of numbers: as whole ones; `d`: as doubles). Each is computed once, in a plan that stays
    small."""
    texts = [F.when(F.col(names[i]) != "", F.col(names[i])) for i, _ in asked]
    empty = [(F.col(names[i]) == "").alias(f"e{n}") for n, (i, _) in enumerate(asked)]
    frame = frame.select(*[text.alias(f"t{n}") for n, text in enumerate(texts)], *empty)
    kept = [
        value(F.col(f"t{n}"), "long" if kind == NUMBER else kind, how, guessed=True).isNotNull()
        for n, (_, kind) in enumerate(asked)
    ]
    frame = frame.select("*", *[test.alias(f"w{n}") for n, test in enumerate(kept)])
    doubles = [
        F.when(F.col(f"w{n}") & (F.length(F.col(f"t{n}")) <= 15), F.lit(True))
        .otherwise(value(F.col(f"t{n}"), "double", how, guessed=True).isNotNull())
        .alias(f"d{n}")
        for n, (_, kind) in enumerate(asked)
        if kind == NUMBER
    ]
    return frame.select("*", *doubles)


def _facts(number: int, kind: str, how: TextOptions) -> list[Column]:
    """Return aggregates about a column: how many values and empty texts it has, the bits that all
    values have, those that any has, the longest, and an example against the type."""
    given, there = F.col(f"t{number}"), F.col(f"t{number}").isNotNull()
    every, some, against = _bits(number, kind, how)
    return [
        F.count(given).alias("values"),
        F.count_if(F.col(f"e{number}")).alias("empties"),
        F.bit_and(F.when(there, every)).alias("every"),
        F.bit_or(F.when(there, some)).alias("some"),
        F.max(F.length(given)).alias("longest"),
        F.min(F.when(there & against, F.left(given, F.lit(_SHOWN)))).alias("example"),
    ]


def _flag(test: Column, bit: int) -> Column:
    return F.when(test, F.lit(bit)).otherwise(F.lit(0)).cast("long")


def _bits(asked: int, kind: str, how: TextOptions) -> tuple[Column, Column, Column]:
    text, kept = F.col(f"t{asked}"), F.col(f"w{asked}")
    if kind == NUMBER:
        plain, whole, double = number(text, how), kept, F.col(f"d{asked}")
        decimal = plain.rlike(_PLAIN)
        every = (
            F.when(whole, F.lit(_LONG | _DECIMAL))
            .otherwise(_flag(decimal, _DECIMAL))
            .cast("long")
            .bitwiseOR(_flag(double, _DOUBLE))
        )
        point = F.instr(plain, ".")
        scale = F.when(point > 0, F.least(F.length(plain) - point, F.lit(_SCALES))).otherwise(0)
        some = F.when(whole, F.lit(_WHOLE | 1)).otherwise(
            F.call_function("shiftleft", F.lit(1).cast("long"), scale)
            .bitwiseOR(_flag(plain.endswith(".0"), _POINT_ZERO))
            .bitwiseOR(_flag(plain.rlike("[.eEN]"), _FRACTION))
        )
        return every, some, ~(whole | double)
    if kind != TIME or how.timestamp_format:
        return _flag(kept, 1), F.lit(0).cast("long"), ~kept
    fraction = F.regexp_extract(text, r"\.([0-9]+)", 1)
    bits = [
        F.call_function("shiftleft", F.lit(1).cast("long"), F.length(fraction)),
        _flag(text.rlike(ZONE + "$"), _ZONED),
        _flag(~text.rlike(ZONE + "$"), _LOCAL),
        _flag(F.contains(text, F.lit("T")), _T),
        _flag(~F.contains(text, F.lit("T")), _BLANK),
        _flag(text.rlike("^.{10}.[0-9]{2}:[0-9]{2}:"), _SECONDS),
        _flag(~text.rlike("^.{10}.[0-9]{2}:[0-9]{2}:"), _MINUTES),
        _flag(fraction.endswith("0"), _ENDS_IN_ZERO),
    ]
    some = bits[0]
    for bit in bits[1:]:
        some = some.bitwiseOR(bit)
    return _flag(kept, 1), some, ~kept


def _decided(kind: str, facts: Row, how: TextOptions) -> Guess:
    if kind == NUMBER:
        return _number(facts, how)
    if not facts.every & 1:
        return Guess("string", _reason([facts.example], how))
    if kind == TIME and not how.timestamp_format:
        return _time(facts, how)
    return Guess(kind, f"as {how.date_format}" if kind == DATE and how.date_format else "")


def _number(facts: Row, how: TextOptions) -> Guess:
    every, some = facts.every, facts.some
    scales = [s for s in range(_SCALES + 1) if some >> s & 1]
    mixed = bool(some & _WHOLE and some & _POINT_ZERO)
    if every & _LONG:
        return Guess("long")
    if every & _DOUBLE and some & _FRACTION and not mixed:
        return Guess("double")
    longest = facts.longest
    if every & _DECIMAL and len(scales) == 1 and longest <= 38:
        scale = scales[0]
        precision = 18 if longest <= 18 and scale <= 15 else 38
        why = f"{facts.example} would become another text as a double" if facts.example else ""
        return Guess(f"decimal({precision},{scale})", why)
    if mixed and not facts.example:
        return Guess("string", "whole numbers are written in two ways, such as 3 and 3.0")
    return Guess("string", _reason([facts.example] if facts.example else [], how))


def _time(facts: Row, how: TextOptions) -> Guess:
    some = facts.some
    lengths = [n for n in range(20) if some >> n & 1]
    pairs = ((_ZONED, _LOCAL), (_T, _BLANK), (_SECONDS, _MINUTES))
    mixed = any(some & a and some & b for a, b in pairs)
    same = len(lengths) == 1 or not some & _ENDS_IN_ZERO or lengths == [0, 6]
    if mixed or not same:
        return Guess("string", "times are written in several ways")
    if some & _ZONED:
        return Guess("timestamp")
    return Guess("timestamp", f"without a zone, read as {how.time_zone} (time_zone says otherwise)")


def _reason(texts: Sequence[str | None], how: TextOptions) -> str:
    """Return what a type would do to one of the texts, if it looks like a value of that type."""
    for text in texts:
        if text is None:
            continue
        shown = text[:_SHOWN]
        if re.match(r"^\s*[+-]?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", text):
            return f"{shown} is a time without a day"
        if re.match(TIMESTAMP, text) and re.search(ZONE + "$", text):
            return f"{shown} would lose its offset as a timestamp"
        if re.match(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return f"{shown} is no date or time that would come back"
        if re.match(r"^[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}", text):
            return f"{shown} may be a date: date_format says how to read it"
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
