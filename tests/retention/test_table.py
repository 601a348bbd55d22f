"""The table of all combinations in docs/retention.md, row by row."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.retention.placing import let_release, limit, record
from tests.world.groups import Group
from tests.world.retention import pass_time
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.model.retention_policy import Policy

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
UNIT = {"age": 100, "bytes": 10}  # an event is so old or large


class Ten:
    """The stream of ten events, of which each tail was recorded, and two groups."""

    def __init__(self, database: Database) -> None:
        self.lane = Lane.made(database, segments=1)
        for _ in range(10):
            self.lane.append({"0.0": 1})
        record(self.lane, [(100 * (10 - n), {"0.0": n}, 10 * n) for n in range(11)])
        self.groups = {one: Group.made(self.lane, release="manual") for one in ("fast", "slow")}

    def decided(self, policy: Policy, released: dict[str, int]) -> tuple[int, str]:
        """Return where the stream begins then, and by which rule."""
        for name, group in self.groups.items():
            let_release(group, {"0.0": released.get(name, 0)}, name in released)
        limit(self.lane, policy)
        [decided] = self.lane.rows("SELECT cut, rule FROM decide_retention(:s)")
        return (decided.cut or {"0.0": 0})["0.0"], decided.rule


@pytest.fixture
def ten(shared_database: Database) -> Ten:
    return Ten(shared_database)


def limited(**amounts: int) -> Any:
    """A policy by consumption, with limits in events."""
    units = {name: amount * UNIT[name.partition("_")[2]] for name, amount in amounts.items()}
    return Policy("consumed", **units)


def test_the_table_is_that_of_all_combinations() -> None:
    assert [(subscribers, limits) for subscribers, limits, _ in ROWS] == list(TRUNCATED)


@pytest.mark.parametrize(
    ("subscribers", "limits", "said"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS]
)
def test_what_is_truncated_is_what_the_table_says(
    ten: Ten, subscribers: str, limits: str, said: str
) -> None:
    rules = set()
    for unit, other in (("age", None), ("bytes", None), ("age", "bytes"), ("bytes", "age")):
        set_ = {f"{which}_{unit}": LIMITS[which] for which in LIMITS if which in limits}
        if other is not None:
            set_ |= {f"{which}_{other}": SLACK[which] for which in LIMITS if which in limits}
        policy = limited(**set_)
        for slowest, (offset, rule) in TRUNCATED[subscribers, limits].items():
            released = {"fast": 9, "slow": slowest}
            if subscribers == "some":
                found = [ten.decided(policy, released)]
            else:
                found = [ten.decided(policy, {})]
                for kind in ("age", "size"):
                    if f"max_{'bytes' if kind == 'size' else kind}" in set_:
                        one = replace(policy, retention=kind)
                        found += [ten.decided(one, {}), ten.decided(one, released)]
            named = f"{rule}_{unit}" if rule in LIMITS else rule
            assert set(found) == {(offset, named)}, (policy, released)
            rules.add(named)
    assert rules == set(re.findall(r"`(\w+)`", said))


def test_a_stream_that_keeps_is_left_alone_whatever_is_released(ten: Ten) -> None:
    for released in ({}, {"fast": 9, "slow": 5}):
        assert ten.decided(Policy(), released) == (0, "keep")


def test_a_minimum_is_not_undercut_by_a_maximum_in_the_other_unit(ten: Ten) -> None:
    assert ten.decided(limited(min_age=8, max_bytes=6), {"slow": 1}) == (2, "max_bytes")
    assert ten.decided(limited(min_bytes=8, max_age=6), {"slow": 1}) == (2, "max_age")


def test_subscribers_that_have_timed_out_count_as_absent(ten: Ten) -> None:
    ten.groups["slow"].update(time_out=1)
    pass_time(ten.lane, 50)
    assert ten.decided(limited(), {"slow": 2}) == (0, "no_rule")
    assert ten.decided(limited(max_age=3), {"slow": 2}) == (7, "max_age")
