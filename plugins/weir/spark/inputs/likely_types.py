"""The type that the first texts of a column suggest, with a cheap test for all of its texts.

If each text passes, the aggregate of `weir.spark.inputs.guess` would decide for the same type,
and need not be computed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.kernel.text_options import TextOptions
from weir.kernel.text_patterns import CANONICAL, ZONE
from weir.spark.inputs.text_values import END, value

_WHOLE = r"-?[0-9]+"
_CLOCK = r"[0-9]{2}:[0-9]{2}"
_NO_ZERO = r"(?:\.[0-9]*[1-9])?"
_SHOWN = r"[0-9-]{10} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"  # as Spark casts times to texts
_WIDTHS = (18, 38)  # of the texts of decimals


@dataclass(frozen=True)
class Likely:
    """A type, and what returns whether a text proves it."""

    kind: str
    why: str
    proves: Callable[[Column], Column]


def likely(kind: str, seen: Sequence[str], how: TextOptions) -> Likely | None:
    """Return the likely type of a column whose first texts all look like one kind (`number`, or a
    type), or None if only the aggregate can tell."""
    if kind == "number":
        return None if how.decimal != "." or how.thousands else _number(seen, how)
    if kind == "timestamp":
        return None if how.timestamp_format else _time(seen, how)
    why = f"as {how.date_format}" if kind == "date" and how.date_format else ""
    return Likely(kind, why, lambda text: value(text, kind, how, guessed=True).isNotNull())


def _number(seen: Sequence[str], how: TextOptions) -> Likely | None:
    whole = [re.fullmatch(_WHOLE, text) is not None for text in seen]
    if all(whole):
        return Likely("long", "", lambda text: _comes_back(text, "long"))
    if all(re.fullmatch(CANONICAL, text) for text in seen):
        fractions = any(re.search("[.eEN]", text) for text in seen)
        zeros = any(text.endswith(".0") for text in seen)
        if not fractions or (zeros and any(whole)):
            return None

        def double(text: Column) -> Column:
            other = _has_any(text, ".eEN") if zeros else ~text.endswith(".0")
            back = _comes_back(text, "double")  # mostly, and in a third of the time
            return other & (back | value(text, "double", how, guessed=True).isNotNull())

        return Likely("double", "", double)
    scale = len(seen[0].partition(".")[2])
    same = rf"(?!-0\.0+$)-?(?:0|[1-9][0-9]*)\.[0-9]{{{scale}}}"
    # A text with an outer zero, such as 2.50, never comes back from a double.
    zero = min((text for text in seen if re.search(r"\.[0-9]+0$", text)), default=None)
    if zero is None or scale > 15 or not all(re.fullmatch(same, text) for text in seen):
        return None
    longest = max(len(text) for text in seen)
    width = next((one for one in _WIDTHS if longest <= one), None)
    if width is None:
        return None
    return Likely(
        f"decimal({width},{scale})",
        f"{zero} would become another text as a double",
        lambda text: text.rlike(f"^{same}{END}") & (F.length(text) <= width),
    )


def _time(seen: Sequence[str], how: TextOptions) -> Likely | None:
    zoned = re.search(ZONE + "$", seen[0]) is not None
    between = "T" if "T" in seen[0] else " "
    seconds = re.match("^.{10}.[0-9]{2}:[0-9]{2}:", seen[0]) is not None
    fractions = [found[1] if (found := re.search(r"\.([0-9]+)", text)) else "" for text in seen]
    lengths = {len(one) for one in fractions}
    if len(lengths) == 1:
        size = lengths.pop()
        fraction = rf"\.[0-9]{{{size}}}" if size else ""
    elif lengths == {0, 6}:
        fraction = r"(?:\.[0-9]{6})?"
    elif not any(one.endswith("0") for one in fractions):
        fraction = _NO_ZERO
    else:
        return None
    clock = _CLOCK + (":[0-9]{2}" + fraction if seconds else "")
    shape = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{between}{clock}" + (f" ?{ZONE}" if zoned else "")
    if not all(re.fullmatch(shape, text) for text in seen):
        return None
    why = "" if zoned else f"without a zone, read as {how.time_zone} (time_zone says otherwise)"

    as_spark_writes = re.fullmatch(_SHOWN, seen[0]) and fraction in ("", _NO_ZERO)

    def proves(text: Column) -> Column:
        slowly = F.when(
            text.rlike(f"^{shape}{END}"), value(text, "timestamp", how, guessed=True).isNotNull()
        )
        if not as_spark_writes:
            return slowly
        four_digits = ~text.startswith("0000") & (F.substring(text, 5, 1) == "-")
        whole = F.length(text) == 19 if fraction == "" else F.lit(True)
        return (four_digits & whole & _comes_back(text, "timestamp")) | slowly

    return Likely("timestamp", why, proves)


def _has_any(text: Column, letters: str) -> Column:
    found = [F.contains(text, F.lit(letter)) for letter in letters]
    return reduce(Column.__or__, found)


def _comes_back(text: Column, kind: str) -> Column:
    """Return whether Spark writes a text's value as the same text. An expression of a pattern takes
    longer than both casts."""
    return F.coalesce(text.try_cast(kind).cast("string") == text, F.lit(False))
