"""Guesses of random columns: each text comes back from the value of the type that was taken."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weir.inputs import text_guess
from weir.inputs.text_guess import Guess, Look, guess, look
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value

HOW = TextOptions()
_TEXTS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=True).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.from_regex(r"[+-]?[0-9]{1,18}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r" ?[0-9_]{1,5}[dDfFL]?", fullmatch=True),
    st.dates().map(str), st.datetimes().map(str), st.times().map(str),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda t: t.isoformat()),
    st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?Z?",
                  fullmatch=True),
    st.sampled_from(["true", "TRUE", "NaN", "Infinity", "-0", "0x1F", "NA", "null", "1e400"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=6),
)  # fmt: skip


def _back(value: Any, text: str) -> bool:
    """Whether the text can be known from the value."""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, float):
        return (math.isnan(value) and text == "NaN") or (
            repr(value) == repr(float(text)) and Decimal(text).is_finite() is math.isfinite(value)
            # Java before 19 writes -85737384264691552 with 17 digits, and Python with 16.
            and (not math.isfinite(value)
                 or Decimal(text) in (Decimal(repr(value)), Decimal(f"{value:.16e}")))
        )  # fmt: skip
    if isinstance(value, dt.datetime):
        at = dt.datetime.fromisoformat(text).replace(tzinfo=None)
        return value.replace(tzinfo=None) == at
    if isinstance(value, Decimal):
        return format(value, "f") == text
    return str(value) == text


def texts_of(column: list[str]) -> pa.ChunkedArray:
    """A column of texts."""
    return pa.chunked_array([column], pa.string())


def guessed(parts: list[list[str]]) -> Guess:
    """What is guessed of a column whose parts are looked at one by one."""
    return guess(sum((look(texts_of(part), HOW) for part in parts), Look()), HOW)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_TEXTS, min_size=1, max_size=6), st.integers(0, 6))
def test_a_guess_keeps_every_text_of_random_columns_in_whatever_parts(
    column: list[str], place: int
) -> None:
    found = guessed([column[:place], column[place:]])
    assert found.kind == guessed([column]).kind
    kind = found.kind or "string"
    for one, text in zip(value(texts_of(column), kind, HOW, guessed=True), column, strict=True):
        kept = one.as_py()
        assert (kept is None and text == "") or _back(kept, text), (kind, kept, text)


_FIRST = 3
# The first texts of a column, later ones, and the type.
SUGGESTED: list[tuple[list[str], list[str], str]] = [
    (["1", "2", "3"], ["4", "-5"], "long"),
    (["1", "2", "3"], ["4\n"], "string"),
    (["1", "2", "3"], ["007"], "string"),
    (["1", "2", "3"], ["-0"], "string"),
    (["1", "2", "3"], ["1.5"], "double"),
    (["1", "2", "3"], ["1.0"], "string"),
    (["1", "2", "3"], ["9223372036854775808"], "decimal(38,0)"),
    (["1", "2", "3"], ["x"], "string"),
    (["1.5", "2.5", "3"], ["4", "1e-05"], "double"),
    (["1.5", "2.5", "3"], ["4.0"], "string"),
    (["1.5", "2.5", "3.5"], ["4.0", "NaN"], "double"),
    (["1.5", "2.0", "3.5"], ["4"], "string"),
    (["1.5", "2.0", "3.5"], ["4.0", "5.25"], "double"),
    (["1.5", "2.5", "3.5"], ["-0.0"], "double"),
    (["1.5", "2.5", "3.5"], ["1e-7"], "double"),
    (["1.5", "2.5", "3.5"], ["0.10"], "string"),
    (["1.5", "2.5", "3.5"], ["0.1234567890123456789"], "string"),
    (["1.50", "2.55", "3.45"], ["-4.00"], "decimal(18,2)"),
    (["1.50", "2.55", "3.45"], ["-0.00"], "string"),
    (["1.50", "2.55", "3.45"], ["1.50\n"], "string"),
    (["1.50", "2.55", "3.45"], ["12345678901234567.25"], "decimal(38,2)"),
    (["1.50", "2.55", "3.45"], ["1.5"], "string"),
    (["1.55", "2.55", "3.45"], ["1.50"], "decimal(18,2)"),
    (["true", "false", "true"], ["false"], "boolean"),
    (["true", "false", "true"], ["True"], "string"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["1999-12-31"], "date"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["2023-02-29"], "string"),
    (["2024-01-31", "2024-02-29", "2024-03-01"], ["2024-01-31\n"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59"], "timestamp"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31T23:59:59"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59Z"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59-00"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59.25"], "timestamp"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59.20"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 24:00:00"], "string"),
    (["2024-01-31 01:02:03"] * 3, ["2024-01-31 23:59:59\n"], "string"),
    (["2024-01-31 01:02:03", "2024-01-31 01:02:03.000100"] * 2, ["2024-01-31 01:02:03.1"],
     "string"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.0Z"], "timestamp"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.5+02:00"], "string"),
    (["2024-01-31T01:02:03.5Z"] * 3, ["2024-01-31T01:02:03.5"], "string"),
]  # fmt: skip


@pytest.mark.parametrize(("some", "later", "kind"), SUGGESTED)
def test_later_rows_refute_what_the_first_ones_suggest(
    some: list[str], later: list[str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_guess, "SAMPLE", _FIRST)
    for parts in ([[*some, *later, ""]], [some, later], [[], some, [""], later]):
        assert guessed(parts).kind == kind
    assert guessed([later, some]).kind == kind
    kept = value(texts_of([*some, *later]), kind, HOW, guessed=True)
    assert kept.null_count == 0
