"""The rule of `weir.kernel.text_values` as expressions of Spark, for texts in json files: a value
is kept if it says what the text says, the same digits, the same day, the same instant."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.kernel.text_options import TextOptions
from weir.kernel.text_patterns import DAY, INFINITE, INSTANT, INTEGER, LOCAL, NUMBER

INTEGERS = ("byte", "short", "integer", "long")
# The end of a text. `$` is also before a newline at the end, which a cast would drop.
END = r"(?![\s\S])"
_SURE = 15  # so many digits every double keeps


def value(text: Column, kind: str, how: TextOptions) -> Column:
    """Return the value of a text in a type of Spark, null if the type can't keep it."""
    if kind in INTEGERS:
        return _cast(text, _whole(INTEGER), kind)
    if kind in ("double", "float"):
        return _approximate(text, kind)
    if kind.startswith("decimal"):
        return _decimal(text, kind)
    if kind == "boolean":
        shown = F.lower(text)
        return F.when(shown == "true", F.lit(True)).when(shown == "false", F.lit(False))
    if kind == "date":
        return _date(text, how)
    if kind == "timestamp":
        return _timestamp(text, how)
    if kind == "timestamp_ntz":
        if how.timestamp_format:
            return _timestamp(text, how).cast(kind)
        return _cast(text, _whole(LOCAL), kind)
    if kind == "binary":
        return text.cast("binary")
    found = text.try_cast(kind)
    return found if kind == "string" else F.when(found.cast("string") == text, found)


def _whole(pattern: str) -> str:
    return f"^{pattern}{END}"


def _cast(text: Column, pattern: str, kind: str) -> Column:
    """Return the value of a text that matches a pattern, null for others. Spark makes an exception
    of each text that it can't cast, which takes longer than all else."""
    return F.when(text.rlike(pattern), text.try_cast(kind))


def digits(text: Column) -> Column:
    """Return the digits of a number that count: without sign, point, exponent, and outer zeros."""
    return F.btrim(F.regexp_replace(text, "[eE].*|[^0-9]", ""), F.lit("0"))


def keeps_digits(text: Column, found: Column, sure: int = _SURE) -> Column:
    """Return whether a double or float, found in a number's text, has all its digits. Its shortest
    text has the same ones, or they are few enough for any such number.

    (Java before 19 does not always give the shortest text.)
    """
    given = digits(text)
    size = F.abs(found)
    common = (size > 1e-300) & (size < 1e300) if sure == _SURE else (size > 1e-30) & (size < 1e30)
    return ((F.length(given) <= sure) & common) | (given == digits(found.cast("string")))


def _approximate(plain: Column, kind: str) -> Column:
    found = _cast(plain, _whole(NUMBER), kind)
    sure = _SURE if kind == "double" else 6
    short = (F.length(plain) <= sure) & ~plain.contains("e") & ~plain.contains("E")
    kept = found.isNotNull() & (short | keeps_digits(plain, found, sure))
    return F.when(kept, found).when(
        plain.rlike(_whole(INFINITE)),
        F.regexp_replace(plain, "(?i)inf$", "Infinity").try_cast(kind),
    )


def _decimal(plain: Column, kind: str) -> Column:
    found = _cast(plain, _whole(NUMBER), kind)
    shown = found.cast("string")
    return F.when((shown == plain) | (digits(plain) == digits(shown)), found)


def _date(text: Column, how: TextOptions) -> Column:
    if how.date_format:
        found = F.try_to_timestamp(text, F.lit(how.date_format)).cast("date")
        back = F.date_format(found, how.date_format)
    else:
        found = _cast(text, f"^{DAY}$", "date")
        back = found.cast("string")
    return F.when((back == text) & (F.year(found).between(1, 9999)), found)


def _timestamp(text: Column, how: TextOptions) -> Column:
    if how.timestamp_format:
        found = F.try_to_timestamp(text, F.lit(how.timestamp_format))
        back = F.date_format(found, how.timestamp_format)
        kept = (back == text) & F.year(found).between(1, 9999)
        return F.when(kept & _is_once(found) if how.time_zone != "UTC" else kept, found)
    found = _cast(text, _whole(INSTANT), "timestamp")
    kept = ~text.startswith("0000")
    if how.time_zone != "UTC":  # a time that a change of the clocks leaves out does not come back
        # Of a text of this pattern; a minus of the day is before the eleventh character.
        with_zone = (
            text.endswith("Z") | F.contains(text, F.lit("+")) | (F.locate("-", text, 11) > 0)
        )
        local = F.translate(F.left(text, F.lit(16)), "T", " ")
        shown = F.left(found.cast("string"), F.length(local))
        kept = kept & (with_zone | ((shown == local) & _is_once(found)))
    return F.when(kept, found)


def _is_once(found: Column) -> Column:
    """Return whether the clocks of the session's zone show the time of an instant only once: they
    are put back by an hour, or by half an hour."""
    shown = found.cast("string")
    return (F.timestamp_add("MINUTE", F.lit(30), found).cast("string") != shown) & (
        F.timestamp_add("MINUTE", F.lit(60), found).cast("string") != shown
    )
