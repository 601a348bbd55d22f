"""Ids, names and overlaps of segments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.raises import raises
from weir.model.segment import Segment, parse_segment_name, segment_id, segment_name

numbers = st.integers(0, 2**32 - 1)
epochs = st.integers(0, 2**31 - 1)


def test_id_is_the_epoch_above_the_number() -> None:
    assert segment_id(5, 1) == (1 << 32) | 5
    assert segment_id(12, 10) == 42949672972


@given(numbers, epochs)
def test_number_epoch_and_name_come_back_from_the_id(number: int, epoch: int) -> None:
    segment = Segment(segment_id(number, epoch), 0.0, 1.0)
    assert (segment.number, segment.epoch) == (number, epoch)
    assert segment.name == segment_name(segment.segment_id) == f"{number}.{epoch}"
    assert parse_segment_name(segment.name) == segment.segment_id


@given(numbers, epochs)
def test_every_id_is_a_positive_bigint(number: int, epoch: int) -> None:
    assert 0 <= segment_id(number, epoch) < 2**63


@pytest.mark.parametrize(("number", "epoch"), [(-1, 0), (2**32, 0), (0, -1), (0, 2**31)])
def test_number_or_epoch_that_does_not_fit_is_refused(number: int, epoch: int) -> None:
    with raises("name_invalid segment"):
        segment_id(number, epoch)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5.",
        ".1",
        "5.1.0",
        "05.1",
        "5.01",
        "-5.1",
        "5.1\n",
        " 5.1",
        "\u0665.1",
        "5,1",
        "9" * 99,
    ],
)
def test_what_is_not_number_dot_epoch_is_no_segment(text: str) -> None:
    with raises("name_invalid segment"):
        parse_segment_name(text)


def test_name_beyond_the_largest_id_is_refused() -> None:
    with raises("name_invalid 4294967296"):
        parse_segment_name("4294967296.0")


@pytest.mark.parametrize(
    ("low", "high", "overlapping"),
    [(0.0, 0.25, False), (0.0, 0.26, True), (0.3, 0.4, True), (0.0, 1.0, True), (0.5, 1.0, False)],
)
def test_ranges_that_only_touch_do_not_overlap(low: float, high: float, overlapping: bool) -> None:
    middle, other = Segment(0, 0.25, 0.5), Segment(1, low, high)
    assert middle.overlaps(other) is other.overlaps(middle) is overlapping


def test_segments_sort_by_age() -> None:
    old, copied = Segment(segment_id(9, 0), 0.5, 1.0), Segment(segment_id(2, 3), 0.0, 0.5)
    assert sorted([copied, old]) == [old, copied]
