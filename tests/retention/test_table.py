"""The table of all combinations in docs/retention.md, row by row."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.model.test_stream_cut import Remaining, Stream
from tests.retention.decision import Decision, decide
from tests.retention.test_decision import World
from weir.model.retention_policy import Policy
from weir.model.stream_cut import StreamCut

TEXT = (Path(__file__).parents[2] / "docs/retention.md").read_text()
_, _, TABLE = TEXT.partition("### All combinations")
ROWS = re.findall(
    r"^\| (?:`\w+`(?:, )?)+ \| (-|some) \| (none|m[a-z ]+) \| (.+) \|$", TABLE, re.MULTILINE
)

# Of ten events, written one at a time, a minimum keeps the last three and a maximum no more than
# the last six. Per what the slowest subscriber has released: where the stream begins then, and why.
TRUNCATED: dict[tuple[str, str], dict[int, tuple[int, str]]] = {
    ("-", "none"): {0: (0, "no_rule")},
    ("-", "min"): {0: (0, "no_rule")},
    ("-", "max"): {0: (4, "max")},
    ("-", "min and max"): {0: (4, "max")},
    ("some", "none"): {2: (2, "consumed"), 5: (5, "consumed"), 9: (9, "consumed")},
    ("some", "min"): {2: (2, "consumed"), 5: (5, "consumed"), 9: (7, "min")},
    ("some", "max"): {2: (4, "max"), 5: (5, "consumed"), 9: (9, "consumed")},
    ("some", "min and max"): {2: (4, "max"), 5: (5, "consumed"), 9: (7, "min")},
}
LIMITS = {"min": 3, "max": 6}
SLACK = {"min": 1, "max": 8}  # a minimum that keeps less, a maximum that lets more be

STREAM = Stream(0, 8)
[SEGMENT] = STREAM.segments
STREAM.sizes[SEGMENT] = 10


def from_(offset: int) -> Remaining:
    return frozenset((SEGMENT, i) for i in range(offset, 11))


def decided(policy: Policy, released: dict[str, int]) -> Decision:
    records = [(time, from_(time)) for time in range(11)]
    subscribers = {name: from_(offset) for name, offset in released.items()}
    return World(STREAM, policy, from_(0), subscribers, records, 10).decide()


def test_the_table_is_that_of_all_combinations() -> None:
    assert [(subscribers, limits) for subscribers, limits, _ in ROWS] == list(TRUNCATED)


@pytest.mark.parametrize(
    ("subscribers", "limits", "said"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS]
)
def test_what_is_truncated_is_what_the_table_says(subscribers: str, limits: str, said: str) -> None:
    rules = set()
    for unit, other in (("age", None), ("bytes", None), ("age", "bytes"), ("bytes", "age")):
        set_ = {f"{which}_{unit}": LIMITS[which] for which in LIMITS if which in limits}
        if other is not None:
            set_ |= {f"{which}_{other}": SLACK[which] for which in LIMITS if which in limits}
        for slowest, (offset, rule) in TRUNCATED[subscribers, limits].items():
            released = {"fast": 9, "slow": slowest}
            policy = Policy("consumed", **set_)
            policy.check()
            if subscribers == "some":
                found = [decided(policy, released)]
            else:
                found = [decided(policy, {})]
                for kind in ("age", "size"):
                    if f"max_{'bytes' if kind == 'size' else kind}" in set_:
                        one = replace(policy, retention=kind)
                        found += [decided(one, {}), decided(one, released)]
            for decision in found:
                cut = StreamCut({SEGMENT: offset}) if offset else None
                named = f"{rule}_{unit}" if rule in LIMITS else rule
                assert (decision.cut, decision.rule) == (cut, named), (policy, released)
            rules.add(named)
    assert rules == set(re.findall(r"`(\w+)`", said))


def test_a_stream_that_keeps_is_left_alone_whatever_is_released() -> None:
    for released in ({}, {"fast": 9, "slow": 5}):
        decision = decided(Policy(), released)
        assert (decision.cut, decision.rule, decision.held_by) == (None, "keep", ())


def test_a_minimum_is_not_undercut_by_a_maximum_in_the_other_unit() -> None:
    for policy, rule in (
        (Policy("consumed", min_age=8, max_bytes=6), "max_bytes"),
        (Policy("consumed", min_bytes=8, max_age=6), "max_age"),
    ):
        decision = decided(policy, {"slow": 1})
        assert (decision.cut, decision.rule) == (StreamCut({SEGMENT: 2}), rule)


def test_subscribers_that_have_timed_out_count_as_absent() -> None:
    for max_age, cut in ((None, None), (3, StreamCut({SEGMENT: 7}))):
        world = World(STREAM, Policy("consumed", max_age=max_age), from_(0), {"late": from_(2)},
                      [(time, from_(time)) for time in range(11)], 10)  # fmt: skip
        situation = world.situation()
        absent = replace(situation, subscribers={}, timed_out=situation.subscribers)
        assert decide(absent).cut == cut
