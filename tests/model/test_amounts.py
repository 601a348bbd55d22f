"""Ages and sizes: what people write, and what is said back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raises import raises
from weir.model.amounts import AGE_PATTERN, SIZE_PATTERN, parse_age, parse_size, say_age, say_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30 min", 1800), ("7d", 604800), ("1.5 h", 5400), ("0 s", 0), ("none", None), ("", None)],
)
def test_an_age_is_read_in_seconds(text: str, seconds: int | None) -> None:
    assert parse_age(text) == seconds


def test_a_size_is_read_in_bytes() -> None:
    assert [parse_size(one) for one in ("12 B", "500 MB", "1.5 GB")] == [
        12,
        500_000_000,
        1500000000,
    ]


@pytest.mark.parametrize("text", ["7", "d", "-1 d", "1 week", "1 mb", "7 d 3 h", "nan s"])
def test_anything_else_is_refused_with_the_units(text: str) -> None:
    for parse in (parse_age, parse_size):
        with raises("argument_invalid units"):
            parse(text)


def test_less_than_a_unit_is_refused_as_it_was_written() -> None:
    with raises("argument_invalid '0.4 s' 1 s"):
        parse_age("0.4 s")
    with raises("argument_invalid '0.2 B' 1 B"):
        parse_size("0.2 B")


@given(st.integers(0, 10**12 - 1))
def test_what_is_said_is_read_as_the_same(amount: int) -> None:
    assert parse_age(say_age(amount).replace(",", "")) == amount
    assert parse_size(say_size(amount).replace(",", "")) == amount


@pytest.mark.parametrize("text", ["٧ d", "७ d", "７ d", "𝟕 d", "1٠ min", "1.٥ h", "² d"])
def test_amounts_have_the_digits_0_to_9_as_forms_take_them(text: str) -> None:
    for parse, pattern in ((parse_age, AGE_PATTERN), (parse_size, SIZE_PATTERN)):
        with raises("argument_invalid"):
            parse(text)
        assert re.fullmatch(pattern, text) is None
