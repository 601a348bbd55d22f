"""Splits, coverage and the validity of scales, against cells of a grid."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chance import random_for
from tests.raises import raises
from weir.errors import InvalidInput
from weir.model.key_space import (
    KeyRange,
    check_scale,
    covers,
    even_split,
    merge_blocks,
    splits_and_merges,
    tiles,
)
from weir.model.segment import Segment, segment_id

GRID = 8
grid_range = st.tuples(st.integers(0, GRID - 1), st.integers(1, GRID)).filter(lambda r: r[0] < r[1])
grid_ranges = st.lists(grid_range.map(lambda r: KeyRange(r[0] / GRID, r[1] / GRID)), max_size=5)
tilings = st.sets(st.integers(1, GRID - 1)).map(
    lambda inner: [
        KeyRange(low / GRID, high / GRID)
        for low, high in zip([0, *sorted(inner)], [*sorted(inner), GRID], strict=True)
    ]
)


def cells(ranges: list[KeyRange]) -> list[int]:
    """Every cell of the grid as often as a range holds it."""
    return sorted(
        cell for low, high in ranges for cell in range(round(low * GRID), round(high * GRID))
    )


def segments(ranges: list[KeyRange], epoch: int = 0) -> list[Segment]:
    return [Segment(segment_id(i, epoch), low, high) for i, (low, high) in enumerate(ranges)]


@given(st.integers(1, 400))
def test_even_split_tiles_the_key_space(count: int) -> None:
    ranges = even_split(count)
    assert len(ranges) == count
    assert tiles(ranges)
    assert max(high - low for low, high in ranges) < 1 / count + 1e-12


@given(st.integers(1, 50), st.floats(0, 0.9), st.floats(1e-6, 0.1))
def test_even_split_keeps_the_ends_of_what_it_splits(count: int, low: float, width: float) -> None:
    within = KeyRange(low, low + width)
    assert merge_blocks(even_split(count, within)) == [within]


def test_even_split_multiplies_the_width_as_the_recorded_streams_did() -> None:
    assert even_split(5)[3] == KeyRange(0.6000000000000001, 0.8)


@pytest.mark.parametrize("count", [0, -1])
def test_even_split_into_nothing_is_refused(count: int) -> None:
    with raises("argument_invalid 1"):
        even_split(count)


def test_even_split_of_two_neighbouring_doubles_is_refused() -> None:
    within = KeyRange(0.5, math.nextafter(0.5, 1))
    assert even_split(1, within) == [within]
    with raises("argument_invalid 2 fewer"):
        even_split(2, within)


def test_blocks_are_joined_only_where_ranges_touch_exactly() -> None:
    gap = math.nextafter(0.5, 1)
    assert merge_blocks([KeyRange(0.5, 1.0), KeyRange(0.0, 0.5)]) == [(0.0, 1.0)]
    assert merge_blocks([KeyRange(gap, 1.0), KeyRange(0.0, 0.5)]) == [(0.0, 0.5), (gap, 1.0)]
    assert merge_blocks([KeyRange(0.0, gap), KeyRange(0.5, 1.0)]) == [(0.0, gap), (0.5, 1.0)]


@given(grid_ranges, grid_range)
def test_covers_means_that_every_cell_is_held(ranges: list[KeyRange], t: tuple[int, int]) -> None:
    target = KeyRange(t[0] / GRID, t[1] / GRID)
    assert covers(ranges, target) is (set(cells([target])) <= set(cells(ranges)))


def test_covers_sees_a_gap_of_one_bit() -> None:
    assert not covers([KeyRange(0.0, 0.5), KeyRange(math.nextafter(0.5, 1), 1.0)], KeyRange(0, 1))


@given(grid_ranges | tilings)
def test_tiling_means_that_every_cell_is_held_once(ranges: list[KeyRange]) -> None:
    assert tiles(ranges) is (cells(ranges) == list(range(GRID)))


def test_empty_ranges_do_not_tile() -> None:
    assert not tiles([KeyRange(0.0, 0.5), KeyRange(0.5, 0.5), KeyRange(0.5, 1.0)])
    assert not tiles([])


@given(tilings, tilings)
def test_splits_and_merges_count_ranges_that_lie_in_several(
    old: list[KeyRange], new: list[KeyRange]
) -> None:
    def spread(ranges: list[KeyRange], others: list[KeyRange]) -> int:
        held = [[set(cells([r])) & set(cells([o])) for o in others] for r in ranges]
        return sum(sum(map(bool, row)) > 1 for row in held)

    random_for(len(new)).shuffle(new)
    assert splits_and_merges(old, new) == (spread(old, new), spread(new, old))


@given(tilings, st.data())
def test_scale_is_valid_if_the_new_ranges_hold_each_sealed_cell_once(
    active: list[KeyRange], data: st.DataObject
) -> None:
    all_active = segments(active)
    sealed = data.draw(st.lists(st.sampled_from(all_active), unique=True))
    # Half of the proposals re-cut exactly what is sealed, else hardly any would be valid.
    recut = sorted({0, GRID, *data.draw(st.sets(st.integers(1, GRID - 1)))})
    recut_blocks = [
        KeyRange(max(low, a / GRID), min(high, b / GRID))
        for low, high in merge_blocks(KeyRange(s.key_low, s.key_high) for s in sealed)
        for a, b in pairwise(recut)
        if max(low, a / GRID) < min(high, b / GRID)
    ]
    new = data.draw(st.permutations(recut_blocks) | grid_ranges)
    valid = bool(sealed) and cells(new) == cells([KeyRange(s[1], s[2]) for s in sealed])
    if valid:
        check_scale(all_active, [s.segment_id for s in sealed], new)
    else:
        with pytest.raises(InvalidInput):
            check_scale(all_active, [s.segment_id for s in sealed], new)


HALVES = segments([KeyRange(0.0, 0.5), KeyRange(0.5, 1.0)])


@pytest.mark.parametrize(
    ("seal", "new", "message"),
    [
        ([], [], "argument_invalid scale 0 0"),
        ([0], [], "argument_invalid scale 1 0"),
        ([], [KeyRange(0.0, 0.5)], "argument_invalid scale 0 1"),
        ([0, 0], [KeyRange(0.0, 0.5), KeyRange(0.0, 0.5)], "argument_invalid 0.0 2 once"),
        ([0], [KeyRange(0.0, 0.0), KeyRange(0.0, 0.5)], "argument_invalid [0.0, 0.0) lower"),
        ([0], [KeyRange(-0.5, 0.5)], "argument_invalid [-0.5, 0.5) lower"),
        ([1], [KeyRange(0.5, 1.5)], "argument_invalid [0.5, 1.5) lower"),
        ([0], [KeyRange(0.0, math.nan)], "argument_invalid [0.0, nan) lower"),
        ([0], [KeyRange(math.nan, 0.5)], "argument_invalid [nan, 0.5) lower"),
        ([0], [KeyRange(0.5, 0.0)], "argument_invalid [0.5, 0.0) lower"),
        (
            [0],
            [KeyRange(0.0, 0.3), KeyRange(0.2, 0.5)],
            "argument_invalid [0.0, 0.3) [0.2, 0.5) overlap",
        ),
        ([0], [KeyRange(0.0, 0.4)], "argument_invalid [0.0, 0.4) [0.0, 0.5) exactly"),
        (
            [0],
            [KeyRange(0.0, 0.5), KeyRange(0.5, 1.0)],
            "argument_invalid [0.0, 1.0) [0.0, 0.5) exactly",
        ),
    ],
)
def test_bad_scale_is_refused_and_the_message_names_what_is_bad(
    seal: list[int], new: list[KeyRange], message: str
) -> None:
    with raises(message):
        check_scale(HALVES, seal, new)


def test_segment_that_is_not_active_is_a_conflict_even_if_the_ranges_are_bad() -> None:
    with raises("segment_not_active 7.3"):
        check_scale(HALVES, [0, 0, segment_id(7, 3)], [KeyRange(0.0, math.nan)])


def test_scale_below_the_minimum_is_a_conflict() -> None:
    check_scale(HALVES, [0, 1], [KeyRange(0.0, 1.0)], minimum=1)
    with raises("limit_reached 1 2 minimum"):
        check_scale(HALVES, [0, 1], [KeyRange(0.0, 1.0)], minimum=2)


def test_bad_ranges_are_reported_before_the_minimum() -> None:
    with pytest.raises(InvalidInput):
        check_scale(HALVES, [0, 1], [KeyRange(0.0, 0.9)], minimum=2)
