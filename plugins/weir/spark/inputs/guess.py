"""Guess the types of columns of texts: a type is taken if each text of the column comes back from
its value (docs/decisions/0049).

The first rows say which kind of type may fit. If they suggest one type, a pass with a cheap test
proves it for all rows. A pass that takes all facts decides the other columns.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.kernel.text_guess import (
    BLANK,
    DECIMAL,
    DOUBLE,
    ENDS_IN_ZERO,
    FRACTION,
    KINDS,
    LONG,
    MINUTES,
    NUMBER,
    POINT_ZERO,
    SAMPLE,
    SCALES,
    SECONDS,
    SHOWN,
    TIME,
    WHOLE,
    WITH_T,
    WITHOUT_ZONE,
    ZONED,
    Facts,
    Guess,
    decided,
    may_be,
    reason,
)
from weir.kernel.text_options import TextOptions
from weir.kernel.text_patterns import MINUS_ZERO, PLAIN, ZONE
from weir.spark.inputs.likely_types import Likely, likely
from weir.spark.inputs.text_values import END, number, value

_AT_ONCE = 250  # columns that one pass decides


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
        kinds = [kind for kind in KINDS if may_be(kind, seen, how)]
        asked += [(i, kind) for kind in kinds]
        if len(kinds) == 1 and (one := likely(kinds[0], seen, how)) is not None:
            suggested[i] = one
        if kinds:
            found.append(None)
        else:
            found.append(Guess("string", reason(seen, how) if seen else ""))
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
            new = decided(kind, Facts(one.every, one.some, one.longest, one.example), how)
            if found[i] is None or found[i].kind in (None, "string"):  # type: ignore[union-attr]
                found[i] = new
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
        F.min(F.when(there & against, F.left(given, F.lit(SHOWN)))).alias("example"),
    ]


def _flag(test: Column, bit: int) -> Column:
    return F.when(test, F.lit(bit)).otherwise(F.lit(0)).cast("long")


def _bits(asked: int, kind: str, how: TextOptions) -> tuple[Column, Column, Column]:
    text, kept = F.col(f"t{asked}"), F.col(f"w{asked}")
    if kind == NUMBER:
        plain, whole, double = number(text, how), kept, F.col(f"d{asked}")
        decimal = plain.rlike(f"^{PLAIN}{END}") & ~plain.rlike(f"^{MINUS_ZERO}{END}")
        every = (
            F.when(whole, F.lit(LONG | DECIMAL))
            .otherwise(_flag(decimal, DECIMAL))
            .cast("long")
            .bitwiseOR(_flag(double, DOUBLE))
        )
        point = F.instr(plain, ".")
        scale = F.when(point > 0, F.least(F.length(plain) - point, F.lit(SCALES))).otherwise(0)
        some = F.when(whole, F.lit(WHOLE | 1)).otherwise(
            F.call_function("shiftleft", F.lit(1).cast("long"), scale)
            .bitwiseOR(_flag(plain.endswith(".0"), POINT_ZERO))
            .bitwiseOR(_flag(plain.rlike("[.eEN]"), FRACTION))
        )
        return every, some, ~(whole | double)
    if kind != TIME or how.timestamp_format:
        return _flag(kept, 1), F.lit(0).cast("long"), ~kept
    fraction = F.regexp_extract(text, r"\.([0-9]+)", 1)
    bits = [
        F.call_function("shiftleft", F.lit(1).cast("long"), F.length(fraction)),
        _flag(text.rlike(ZONE + "$"), ZONED),
        _flag(~text.rlike(ZONE + "$"), WITHOUT_ZONE),
        _flag(F.contains(text, F.lit("T")), WITH_T),
        _flag(~F.contains(text, F.lit("T")), BLANK),
        _flag(text.rlike("^.{10}.[0-9]{2}:[0-9]{2}:"), SECONDS),
        _flag(~text.rlike("^.{10}.[0-9]{2}:[0-9]{2}:"), MINUTES),
        _flag(fraction.endswith("0"), ENDS_IN_ZERO),
    ]
    some = bits[0]
    for bit in bits[1:]:
        some = some.bitwiseOR(bit)
    return _flag(kept, 1), some, ~kept
