"""The rates of a segment: each event is in one part, whatever the parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.model.clock import SECOND
from weir.model.segment_rates import Commit
from weir.pages.rates import COLOURS, Levels, say_rate, slices_of

BEGIN = 1_767_225_600 * SECOND  # 2026-01-01
HOUR = 3600 * SECOND


def test_a_commit_is_spread_over_the_time_since_the_one_before_it() -> None:
    found = slices_of([Commit(BEGIN + HOUR, BEGIN, 36_000)], BEGIN, 600 * SECOND, BEGIN + HOUR)
    assert [one.rate for one in found] == [pytest.approx(10.0)] * 6
    assert (found[0].begin, found[-1].end) == (BEGIN, BEGIN + HOUR)


def test_what_came_after_the_end_does_not_change_the_rate_of_the_last_part() -> None:
    commits = [Commit(BEGIN + 90 * SECOND, BEGIN, 90), Commit(BEGIN + HOUR, BEGIN + 90 * SECOND, 9)]
    *_, last = slices_of(commits, BEGIN, 60 * SECOND, BEGIN + 80 * SECOND)
    assert (last.begin, last.end) == (BEGIN + 60 * SECOND, BEGIN + 80 * SECOND)
    assert last.rate == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(1, 10**7), st.integers(1, 1000)), min_size=1, max_size=20),
       st.integers(1, 10**7))  # fmt: skip
def test_slices_keep_every_event(steps: list[tuple[int, int]], width: int) -> None:
    commits, clock = [], BEGIN
    for step, amount in steps:
        commits.append(Commit(clock + step, clock, amount))
        clock += step
    found = slices_of(commits, BEGIN, max(width, (clock - BEGIN) // 200), clock)
    total = sum(one.rate * (one.end - one.begin) / SECOND for one in found)
    assert total == pytest.approx(sum(amount for _, amount in steps))


def test_colours_go_from_none_to_the_largest_rate() -> None:
    levels = Levels([0.05, 3.0, 5000.0])
    assert [levels.of(rate) for rate in (0.0, 0.05, 5000.0, 1e9)] == [0, 1, COLOURS, COLOURS]
    assert len(levels.legend) == COLOURS + 1
    assert levels.legend[-1].words.endswith("/s or more")
    assert Levels([4e-5, 0.02]).legend[-1].words.endswith("/h or more"), "a slow stream's"
    assert [say_rate(rate) for rate in (0.05, 12, 1500, 2e7)] == ["0.05", "12", "1.5k", "20M"]
