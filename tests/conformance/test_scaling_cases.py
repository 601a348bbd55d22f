"""The scenarios of automatic scaling, answered by the pure rules."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.cases import BY_THE_POLICY, CASES, Answers, listed
from weir.errors import WeirError
from weir.model.clock import SECOND
from weir.model.key_space import KeyRange, check_scale, even_split
from weir.model.scale_decision import SegmentLoad, decide, hot_rate, is_cold
from weir.model.scaling_policy import MOST_SEGMENTS, ScalingPolicy
from weir.model.segment import Segment, parse_segment_name, segment_id
from weir.model.segment_rates import MINUTE, WINDOWS, Commit, Rates, rates_of

ANSWERS = Answers()
OLD = 1000 * MINUTE


def policy(target: int, **more: Any) -> ScalingPolicy:
    return ScalingPolicy("event_rate", target, **{"scale_factor": MOST_SEGMENTS, **more})


def loads(segments: list[Segment], rates: dict[Segment, float]) -> list[SegmentLoad]:
    """Old segments, by key, with the same rate over all windows."""
    return [
        SegmentLoad(one, Rates((rates[one],) * 4, WINDOWS), OLD)
        for one in sorted(segments, key=lambda one: one.key_low)
    ]


def steady(per_second: float) -> Rates:
    """The rates after half an hour of commits every five seconds."""
    every = 5 * SECOND
    commits = [Commit(i * every, (i - 1) * every, round(5 * per_second)) for i in range(1, 361)]
    return rates_of(commits, 360 * every, every)


@ANSWERS("AS-01")
def steady_events(case: dict[str, Any]) -> None:
    assert all(4.5 <= rate <= 5.5 for rate in steady(5).over)


@ANSWERS("AS-03")
def steady_bytes(case: dict[str, Any]) -> None:
    # Weir's target is in bytes per second.
    assert all(1.0 <= rate / 1024 <= 1.5 for rate in steady(1250).over)


@ANSWERS("AS-05")
def what_rates_cause(case: dict[str, Any]) -> None:
    found = []
    for step in case["action"]:
        chosen = policy(step["target"], cooldown=step.get("cool_down_s", 0))
        a, b, c, d = step["rates"]
        segment = Segment(0, 0.0, 1.0)
        load = SegmentLoad(segment, Rates((a, b, c, d), WINDOWS), round(step["age"] * MINUTE))
        decision = decide(chosen, [load])
        said = [f"UP {one.pieces}" for one in decision.changes]
        assert (hot_rate(chosen, load) is not None) == bool(said)
        found.append([*said, *(["DOWN"] if is_cold(chosen, load) else [])])
    assert found == case["expected"]


@ANSWERS("AS-07")
def split_and_merge_back(case: dict[str, Any]) -> None:
    chosen = policy(1, scale_factor=2, min_segments=1)
    zero, one, two = (Segment(i, low, high) for i, (low, high) in enumerate(even_split(3)))
    decision = decide(chosen, loads([zero, one, two], {zero: 0.8, one: 0.8, two: 3.0}))
    [(sealed, pieces, _)] = decision.changes
    assert (sealed, pieces) == ((two,), 2)
    halves = even_split(2, KeyRange(two.key_low, two.key_high))
    assert halves == [pytest.approx((2 / 3, 5 / 6)), pytest.approx((5 / 6, 1))]
    three, four = (Segment(segment_id(3 + i, 1), *half) for i, half in enumerate(halves))
    active = [zero, one, three, four]
    cold = {zero: 0.8, one: 0.8, three: 0.8, four: 0.1}
    assert decide(chosen, loads(active, cold)).rule == "no_cold_neighbours"
    [(sealed, pieces, _)] = decide(chosen, loads(active, cold | {three: 0.1})).changes
    assert (sealed, pieces) == ((three, four), 1)
    five = Segment(segment_id(5, 2), two.key_low, two.key_high)
    with pytest.raises(WeirError):
        check_scale([zero, one, five], [five.segment_id], [KeyRange(0.5, 1.0)])


@ANSWERS("AS-09")
def one_step_above_the_minimum(case: dict[str, Any]) -> None:
    segments = [Segment(i, low, high) for i, (low, high) in enumerate(even_split(3))]
    decision = decide(policy(10, min_segments=2), loads(segments, dict.fromkeys(segments, 0.0)))
    [(sealed, pieces, _)] = decision.changes
    assert [one.segment_id for one in sealed] == [parse_segment_name(n) for n in ("0.0", "1.0")]
    assert pieces == 1


@pytest.mark.parametrize("case_id", [i for i in CASES if listed(i, BY_THE_POLICY)])
def test_case(case_id: str) -> None:
    answer: Callable[..., Any] = ANSWERS[case_id]
    answer(CASES[case_id])
