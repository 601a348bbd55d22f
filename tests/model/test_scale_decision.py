"""What scaling by load decides: properties of any decision, and the rules one by one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.model.clock import SECOND
from weir.model.key_space import even_split
from weir.model.scale_decision import (
    MERGE_AT_MOST,
    MERGED,
    ScaleDecision,
    SegmentLoad,
    decide,
    hot_rate,
    is_cold,
)
from weir.model.scaling_policy import ScalingPolicy
from weir.model.segment import Segment
from weir.model.segment_rates import MINUTE, WINDOWS, Rates

OLD = 24 * 60 * MINUTE


def load(number: int, of: int, over: float | tuple[float, ...], age: int = OLD) -> SegmentLoad:
    """One of `of` equal segments, with the same rate over all windows or with four."""
    low, high = even_split(of)[number]
    a, b, c, d = over if isinstance(over, tuple) else (over,) * 4
    return SegmentLoad(Segment(number, low, high), Rates((a, b, c, d), WINDOWS), age)


def loads(*over: float | tuple[float, ...], age: int = OLD) -> list[SegmentLoad]:
    return [load(i, len(over), one, age) for i, one in enumerate(over)]


def policy(**more: int | None) -> ScalingPolicy:
    settings = {"target_rate": 10, "scale_factor": 8, "min_segments": 1, **more}
    return ScalingPolicy("event_rate", **settings)  # type: ignore[arg-type]


def numbers(decision: ScaleDecision) -> list[tuple[list[int], int]]:
    return [([s.segment_id for s in one.segments], one.pieces) for one in decision.changes]


rate = st.one_of(st.just(0.0), st.floats(0, 40), st.floats(0, 1000))
situations = st.lists(
    st.tuples(st.tuples(rate, rate, rate, rate), st.integers(-MINUTE, 60 * MINUTE)),
    min_size=1, max_size=12,
)  # fmt: skip
policies = st.builds(
    lambda target, factor, least, more, cooldown: ScalingPolicy(
        "byte_rate", target, factor, least, None if more is None else least + more, cooldown
    ),
    st.integers(1, 50), st.integers(2, 6), st.integers(1, 8), st.none() | st.integers(0, 12),
    st.integers(0, 3600),
)  # fmt: skip


@given(policies, situations)
def test_any_decision_is_a_scale_that_the_policy_allows(
    policy: ScalingPolicy, situation: list[tuple[tuple[float, ...], int]]
) -> None:
    here = [load(i, len(situation), over, age) for i, (over, age) in enumerate(situation)]
    decision = decide(policy, here)
    after = len(here) + sum(one.pieces - len(one.segments) for one in decision.changes)
    by_segment = {one.segment: one for one in here}
    named = [segment for one in decision.changes for segment in one.segments]
    assert len(named) == len(set(named))
    assert (decision.action == "none") == (not decision.changes)
    assert decision.reason
    if decision.action == "split":
        assert policy.max_segments is None or after <= policy.max_segments
        for one in decision.changes:
            (segment,) = one.segments
            assert 2 <= one.pieces <= (policy.scale_factor or 0)
            assert hot_rate(policy, by_segment[segment]) == one.rate
    if decision.action == "merge":
        assert after >= policy.min_segments
        for one in decision.changes:
            assert one.pieces == 1
            assert 2 <= len(one.segments) <= MERGE_AT_MOST
            assert all(a.key_high == b.key_low for a, b in pairwise(one.segments))
            assert all(is_cold(policy, by_segment[segment]) for segment in one.segments)
            assert one.rate <= MERGED * (policy.target_rate or 0)
    for segment in named:
        assert by_segment[segment].age > policy.cooldown * SECOND
    if decision.action != "split" and policy.max_segments is None:
        assert not decision.hot


@given(policies, situations)
def test_what_a_merge_made_is_not_split_and_what_a_split_made_is_not_merged(
    policy: ScalingPolicy, situation: list[tuple[tuple[float, ...], int]]
) -> None:
    """Under a load that stays as it is, with splits into equal loads."""
    here = [load(i, len(situation), (over[0],) * 4) for i, (over, _) in enumerate(situation)]
    decision = decide(policy, here)
    rates = {one.segment: one.rates.over[0] for one in here if one.rates}
    for one in decision.changes:
        total = sum(rates[segment] for segment in one.segments)
        low, high = one.segments[0].key_low, one.segments[-1].key_high
        made = Segment(1000, low, high)
        four = (total / one.pieces,) * 4
        new = [SegmentLoad(made, Rates(four, WINDOWS), OLD)] * one.pieces
        next_time = decide(policy, new)
        assert next_time.action != {"split": "merge", "merge": "split"}[decision.action]


def test_a_hot_segment_is_split_into_as_many_as_its_rate_has_targets() -> None:
    assert numbers(decide(policy(), loads(35.0, 5.0))) == [([0], 3)]
    assert numbers(decide(policy(), loads(10.5, 5.0))) == [([0], 2)]
    assert numbers(decide(policy(scale_factor=4), loads(950.0, 5.0))) == [([0], 4)]


@pytest.mark.parametrize(
    ("over", "minutes", "hot"),
    [
        ((51, 0, 0, 0), 3, True),
        ((50, 0, 0, 0), 3, False),
        ((51, 0, 0, 0), 2, False),
        ((0, 21, 0, 0), 6, True),
        ((0, 21, 0, 0), 5, False),
        ((0, 0, 11, 0), 11, True),
        ((0, 0, 11, 0), 10, False),
        ((0, 0, 10, 900), 60, False),
    ],
)
def test_a_segment_is_hot_over_a_window_only_if_it_is_older_than_the_window(
    over: tuple[float, ...], minutes: int, hot: bool
) -> None:
    one = load(0, 1, over, minutes * MINUTE)
    assert (hot_rate(policy(cooldown=0), one) is not None) == hot


@pytest.mark.parametrize(
    ("over", "minutes", "cold"),
    [
        ((9, 9, 9, 4.9), 21, True),
        ((9, 9, 9, 4.9), 20, False),
        ((9, 9, 9, 5), 21, False),
        ((10, 9, 9, 1), 21, False),
        ((9, 10, 9, 1), 21, False),
        ((9, 9, 10, 1), 21, False),
    ],
)
def test_a_segment_is_cold_below_half_the_target_over_the_longest_window(
    over: tuple[float, ...], minutes: int, cold: bool
) -> None:
    assert is_cold(policy(), load(0, 1, over, minutes * MINUTE)) == cold


def test_nothing_happens_to_a_segment_within_the_cool_down() -> None:
    young = loads(100.0, 100.0, age=30 * MINUTE)
    assert decide(policy(cooldown=1800), young).rule == "too_young"
    assert decide(policy(cooldown=1799), young).action == "split"
    cold = loads(1.0, 1.0, age=30 * MINUTE)
    assert decide(policy(cooldown=1800), cold).rule == "too_young"
    assert decide(policy(cooldown=1799), cold).action == "merge"


def test_the_maximum_goes_to_the_hottest() -> None:
    decision = decide(policy(max_segments=5), loads(30.0, 80.0, 8.0))
    assert numbers(decision) == [([1], 3)]
    assert decide(policy(max_segments=3), loads(30.0, 80.0, 8.0)).rule == "at_maximum"


def test_cold_neighbours_are_merged_three_at_most_and_others_are_left() -> None:
    assert numbers(decide(policy(), loads(1.0, 1.0, 1.0, 1.0, 1.0))) == [
        ([0, 1, 2], 1),
        ([3, 4], 1),
    ]
    decision = decide(policy(), loads(1.0, 8.0, 1.0))
    assert (decision.action, decision.rule) == ("none", "no_cold_neighbours")


def test_only_neighbours_in_the_key_space_are_merged() -> None:
    apart = [load(0, 3, 1.0), load(2, 3, 1.0)]
    assert decide(policy(), apart).rule == "no_cold_neighbours"


def test_a_merge_never_goes_below_the_minimum() -> None:
    assert numbers(decide(policy(min_segments=2), loads(0.0, 0.0, 0.0))) == [([0, 1], 1)]
    assert decide(policy(min_segments=3), loads(0.0, 0.0, 0.0)).rule == "at_minimum"


def test_neighbours_that_would_be_nearly_hot_together_are_not_merged() -> None:
    assert decide(policy(), loads(4.9, 4.9)).rule == "merge_too_hot"
    assert numbers(decide(policy(), loads(3.0, 2.0, 3.0))) == [([0, 1], 1)]


def test_a_split_comes_before_a_merge() -> None:
    assert decide(policy(), loads(1.0, 1.0, 30.0)).action == "split"


def test_a_hot_segment_that_one_key_fills_is_named_and_left_and_others_are_merged() -> None:
    filled = load(0, 3, 90.0)
    here = [filled, load(1, 3, 8.0), load(2, 3, 1.0)]
    decision = decide(policy(), here, {filled.segment: 1})
    assert (decision.action, decision.rule) == ("none", "one_key")
    assert [hot.segments for hot in decision.hot] == [(filled.segment,)]
    here[1] = load(1, 3, 1.0)
    assert numbers(decide(policy(), here, {filled.segment: 1})) == [([1, 2], 1)]


def test_a_hot_segment_of_one_position_is_named_and_left() -> None:
    low = 0.25
    one = Segment(1, low, low + 2**-53)
    rates = Rates((90.0,) * 4, WINDOWS)
    decision = decide(policy(), [load(0, 2, 8.0), SegmentLoad(one, rates, OLD)])
    assert decision.rule == "one_key"
    assert [hot.segments for hot in decision.hot] == [(one,)]


def test_without_two_commits_nothing_is_decided() -> None:
    one = SegmentLoad(Segment(0, 0.0, 1.0), None, OLD)
    assert decide(policy(), [one]).rule == "no_interval"
    assert decide(ScalingPolicy(), [one]).rule == "fixed"
