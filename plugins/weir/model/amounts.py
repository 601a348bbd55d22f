"""Parse, check and format ages and sizes, as people write them: `30 min`, `7 d`, `500 MB`."""

import re

from weir.errors import InvalidInput

NONE = "none"
LONGEST = 1000 * 366 * 86400  # seconds: Postgres can still add them to now, or subtract them
LARGEST = 2**63 - 1  # bytes: the largest bigint
_AGES = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
# What an age and a size must be, for the sentences of errors.
AGE = f"an age such as 30 min, 12 h or 7 d, or none; the units are {', '.join(_AGES)}"
SIZE = f"a size such as 500 MB or 2 GB, or none; the units are {', '.join(_SIZES)}"
AGE_PATTERN = rf"^(|none|[0-9]{{1,12}}(\.[0-9]{{1,6}})? ?({'|'.join(_AGES)}))$"
SIZE_PATTERN = rf"^(|none|[0-9]{{1,12}}(\.[0-9]{{1,6}})? ?({'|'.join(_SIZES)}))$"


def parse_age(text: str) -> int | None:
    """Return the whole seconds of an age such as `30 min`; None for `none` or an empty text.

    Raises InvalidInput for another text, and for an age between 0 and 1 second.
    """
    return _parse(text, _AGES, AGE)


def parse_size(text: str) -> int | None:
    """Return the bytes of a size such as `500 MB` (powers of 1,000); None for `none` or an empty
    text.

    Raises InvalidInput for another text, and for a size between 0 and 1 byte.
    """
    return _parse(text, _SIZES, SIZE)


def say_age(seconds: int) -> str:
    """Format seconds in the largest unit that divides them: `7 d`."""
    return _say(seconds, _AGES)


def say_size(size: int) -> str:
    """Format bytes in the largest unit that divides them: `500 MB`."""
    return _say(size, _SIZES)


def check_lease(seconds: float) -> None:
    """Check a lease in seconds. Raises InvalidInput with its value."""
    if not 0 <= seconds <= LONGEST:  # NaN is neither
        raise InvalidInput(
            "argument_invalid",
            f"the lease is {seconds:g} s; it must be between 0 and {LONGEST:,} s.",
        )


def _parse(text: str, units: dict[str, int], what: str) -> int | None:
    if text.strip() in ("", NONE):
        return None
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([A-Za-z]+)", text.strip())
    if match is None or match[2] not in units:
        raise InvalidInput("argument_invalid", f"{text!r} is not {what}.")
    amount = round(float(match[1]) * units[match[2]])
    if amount == 0 < float(match[1]):
        least = next(iter(units))
        raise InvalidInput(
            "argument_invalid",
            f"{text!r} is less than 1 {least}; give at least 1 {least}, or none for no limit.",
        )
    return amount


def _say(amount: int, units: dict[str, int]) -> str:
    unit = max((u for u in units if amount % units[u] == 0), key=lambda u: units[u])
    return f"{amount // units[unit]:,} {unit}"
