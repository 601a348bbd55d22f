"""Where segments are split, against every way to divide a few keys."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chance import random_for
from tests.raises import raises
from weir.model.key_space import STEPS, KeyRange, even_split, tiles
from weir.model.split_points import Load, SplitPoints, split_points

# Steps close together, far apart, and next to both ends of the key space.
steps = st.one_of(
    st.integers(0, 8),
    st.integers(1 << 40, (1 << 40) + 8),
    st.integers(0, STEPS - 1),
    st.integers(STEPS - 8, STEPS - 1),
)
weights = st.one_of(st.integers(1, 9), st.integers(1, 10**12))
keyed = st.dictionaries(steps, weights, min_size=1, max_size=8).map(
    lambda found: [Load(step / STEPS, weight, f"key {step}") for step, weight in found.items()]
)


def pieces_of(found: SplitPoints, low: float, high: float, loads: Sequence[Load]) -> list[int]:
    """The weight of each piece, counted anew."""
    bounds = [low, *found.points, high]
    return [sum(one.weight for one in loads if a <= one.position < b) for a, b in pairwise(bounds)]


def every_division(weights: Sequence[int], count: int) -> Iterator[list[int]]:
    """The weights of the pieces of each way to divide them into so many runs."""
    for inner in combinations(range(1, len(weights)), count - 1):
        yield [sum(weights[a:b]) for a, b in pairwise([0, *inner, len(weights)])]


def inequality(parts: Sequence[int]) -> tuple[int, int]:
    return max(parts), sum(part * part for part in parts)


@given(keyed, st.integers(1, 9))
def test_no_other_division_of_whole_keys_is_more_equal(loads: list[Load], pieces: int) -> None:
    found = split_points(0.0, 1.0, loads, pieces, target=1e-15)
    weights = [one.weight for one in sorted(loads)]
    parts = pieces_of(found, 0.0, 1.0, loads)
    assert len(parts) == min(pieces, len(loads))
    assert inequality(parts) == min(inequality(one) for one in every_division(weights, len(parts)))
    assert found.shares == tuple(part / sum(weights) for part in parts)


@given(keyed, st.integers(2, 9), st.floats(0, 1), st.floats(0, 1))
def test_points_lie_strictly_inside_the_range_and_each_piece_has_load(
    loads: list[Load], pieces: int, one: float, other: float
) -> None:
    low, high = min(one, other), max(one, other)
    if low == high:
        return
    inside = [load for load in loads if low <= load.position < high]
    found = split_points(low, high, loads, pieces)
    bounds = [low, *found.points, high]
    assert all(a < b for a, b in pairwise(bounds))
    assert len(found.points) < pieces
    if inside:
        assert all(Fraction(point) * STEPS == int(point * STEPS) for point in found.points)
        assert all(pieces_of(found, low, high, inside))
        assert math.isclose(sum(found.shares), 1)
    around = [KeyRange(0.0, low)] * (low > 0) + [KeyRange(high, 1.0)] * (high < 1)
    assert tiles([*(KeyRange(a, b) for a, b in pairwise(bounds)), *around])


@given(keyed, st.integers(2, 9), st.floats(0.001, 1))
def test_exactly_the_keys_above_the_target_are_hot_and_the_heaviest_is_first(
    loads: list[Load], pieces: int, target: float
) -> None:
    found = split_points(0.0, 1.0, loads, pieces, target)
    total = sum(one.weight for one in loads)
    heavy = {one.key: one.weight / total for one in loads if one.weight > target * total}
    assert {one.key: one.share for one in found.hot_keys} == heavy
    assert [one.share for one in found.hot_keys] == sorted(heavy.values(), reverse=True)


@given(keyed, st.integers(2, 9), st.floats(0.05, 1))
def test_splitting_the_pieces_again_ends_with_hot_keys_alone(
    loads: list[Load], pieces: int, target: float
) -> None:
    total = sum(one.weight for one in loads)
    open_, scales = [(0.0, 1.0)], 0
    while open_:
        low, high = open_.pop()
        inside = [one for one in loads if low <= one.position < high]
        weight = sum(one.weight for one in inside)
        if weight <= target * total:
            continue  # not too hot
        found = split_points(low, high, inside, pieces, target * total / weight)
        if not found.points:
            assert len(inside) == 1
            assert [one.key for one in found.hot_keys] == [inside[0].key]
            continue
        scales += 1
        open_ += pairwise([low, *found.points, high])
    assert scales < len(loads)


@pytest.mark.parametrize("place", [0, 1, 5, 1 << 40, STEPS - 2, STEPS - 1])
def test_a_hot_key_is_cut_off_on_both_sides_to_the_last_bit(place: int) -> None:
    near = [place - 1, place, place + 1]
    loads = [Load(one / STEPS, 100 if one == place else 1, str(one)) for one in near
             if 0 <= one < STEPS]  # fmt: skip
    loads += [Load(0.25, 10, "left"), Load(0.75, 10, "right")]
    found = split_points(0.0, 1.0, loads, 5)
    bounds = [0.0, *found.points, 1.0]
    assert place / STEPS in bounds
    assert (place + 1) / STEPS in bounds
    assert [one.key for one in found.hot_keys] == [str(place)]


def test_what_a_hot_key_leaves_is_not_split_into_more_than_it_needs() -> None:
    noise = [Load(i / 100, 1, f"key {i}") for i in range(100) if i != 50]
    found = split_points(0.0, 1.0, [*noise, Load(0.5, 9_901, "hot")], 16, target=0.1)
    assert found.points == (0.5, 0.5 + 1 / STEPS)
    assert found.shares == (0.005, 0.9901, 0.0049)


def test_a_load_of_several_keys_reaches_up_to_the_next() -> None:
    loads = [Load(0.0, 30), Load(0.125, 10), Load(0.5, 10), Load(0.625, 30)]
    assert split_points(0.0, 1.0, loads, 2).points == (0.5,)
    # Above the target, but not one key: there is nobody to name, and no end to cut it off at.
    found = split_points(0.0, 1.0, loads, 4, target=0.2)
    assert found.hot_keys == ()
    assert found.points == (0.125, 0.5, 0.625)


def test_loads_at_one_position_are_one_and_have_the_name_of_the_key() -> None:
    loads = [Load(0.25, 1), Load(0.5, 3), Load(0.5, 5, "hot"), Load(0.75, 1), Load(0.5, 0, "none")]
    found = split_points(0.0, 1.0, loads, 3)
    assert found.points == (0.5, 0.5 + 1 / STEPS)
    assert [(one.key, one.share) for one in found.hot_keys] == [("hot", 0.8)]


@given(st.floats(0, 0.9), st.floats(1e-300, 0.1), st.integers(1, 50))
def test_without_load_the_ranges_are_equal_and_each_can_get_events(
    low: float, width: float, pieces: int
) -> None:
    high = low + width
    if low == high:
        return
    found = split_points(low, high, [Load(0.95, 5, "elsewhere")] if high < 0.95 else [], pieces)
    assert found.shares == ()
    assert found.hot_keys == ()
    bounds = [low, *found.points, high]
    assert all(a < b for a, b in pairwise(bounds))
    held = [math.ceil(b * STEPS) - math.ceil(a * STEPS) for a, b in pairwise(bounds)]
    assert all(count > 0 for count in held) or len(held) == 1
    if width > 1e-9:
        assert found.points == tuple(r.low for r in even_split(pieces, KeyRange(low, high))[1:])


def test_many_loads_are_divided_about_as_fast_as_they_are_read() -> None:
    random = random_for("many loads")
    loads = [
        Load(i / 2048, 100_000 if random.random() < 0.01 else random.randrange(1, 100), str(i))
        for i in range(2048)
    ]
    for pieces in (2, 16, 200):
        found = split_points(0.0, 1.0, loads, pieces)
        # No key fits into a piece with others if it alone is as heavy as the heaviest piece.
        least = max(max(one.weight for one in loads), sum(one.weight for one in loads) / pieces)
        assert max(pieces_of(found, 0.0, 1.0, loads)) < least + 100_000


def test_what_is_no_range_and_no_number_of_pieces_is_refused() -> None:
    with raises("argument_invalid lower"):
        split_points(0.5, 0.5, [], 2)
    for loads in ([], [Load(0.5, 1, "a")]):
        with raises("argument_invalid"):
            split_points(0.0, 1.0, loads, 0)
