"""Rates of segments, measured over windows that fit the stream's own interval."""

from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.model.clock import SECOND
from weir.model.segment_rates import (
    INTERVALS,
    MINUTE,
    QUIET,
    WINDOWS,
    Commit,
    interval_between,
    measured_until,
    rates_of,
)

HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE
gaps = st.lists(st.integers(1, 100 * HOUR), min_size=1, max_size=30)


def written_every(interval: int, rate: float, until: int) -> list[Commit]:
    """The commits of a writer that commits what came since its commit before."""
    clocks = range(0, until + 1, interval)
    return [Commit(b, a, round(rate * (b - a) / SECOND)) for a, b in pairwise(clocks)]


def committed(gaps: list[int], random: Random) -> list[Commit]:
    """Return commits of any amounts so far apart."""
    clocks = accumulate(gaps, initial=10**15)
    return [Commit(b, a, random.randrange(10**6)) for a, b in pairwise(clocks)]


@pytest.mark.parametrize("interval", [5 * SECOND, MINUTE, 20 * MINUTE, HOUR, DAY])
def test_writers_of_the_same_mean_rate_have_the_same_rates_whatever_their_interval(
    interval: int,
) -> None:
    commits = written_every(interval, 50.0, 10 * DAY)
    clocks = [c.clock for c in commits]
    for before in range(1, 6):  # at any moment between two commits
        now = 10 * DAY + before * interval // 6
        found = interval_between(clocks)
        assert found == interval
        rates = rates_of(commits, measured_until(now, clocks[-1], found), found)
        assert rates.over == pytest.approx((50.0,) * 4)


@given(gaps, st.randoms(use_true_random=False))
def test_over_a_window_that_holds_everything_the_rate_is_the_whole_amount(
    gaps: list[int], random: Random
) -> None:
    commits = committed(gaps, random)
    clock = commits[-1].clock
    interval = clock - 10**15  # four of them reach back beyond everything
    rates = rates_of(commits, clock, interval)
    total = sum(c.amount for c in commits)
    assert rates.windows == tuple(max(w, INTERVALS * interval) for w in WINDOWS)
    for over, window in zip(rates.over, rates.windows, strict=True):
        assert over * window / SECOND == pytest.approx(total)


@given(gaps, st.integers(1, 10**6), st.randoms(use_true_random=False))
def test_rates_of_parts_of_the_commits_add_up_and_end_before_what_is_later(
    gaps: list[int], interval: int, random: Random
) -> None:
    commits = committed(gaps, random)
    clock = commits[-1].clock
    until = random.randrange(10**15, clock + 1)
    some = [c for c in commits if random.random() < 0.5]
    rest = [c for c in commits if c not in some]
    parts = zip(
        rates_of(some, until, interval).over, rates_of(rest, until, interval).over, strict=True
    )
    assert [a + b for a, b in parts] == pytest.approx(rates_of(commits, until, interval).over)
    later = Commit(until + 100, until + 1, 10**9)
    assert rates_of([*commits, later], until, interval) == rates_of(commits, until, interval)


def test_a_commit_counts_for_the_whole_time_since_the_one_before_it() -> None:
    rates = rates_of([Commit(HOUR, 0, 3600)], HOUR, SECOND)
    assert rates.over == pytest.approx((1.0,) * 4)


def test_hundreds_of_commits_within_a_minute_of_each_hour_have_an_interval_of_an_hour() -> None:
    clocks = [h * HOUR + i * MINUTE // 200 for h in range(300) for i in range(200)]
    for last in range(len(clocks) - 200, len(clocks), 7):
        found = interval_between(clocks[: last + 1])
        assert found is not None
        assert HOUR - MINUTE <= found <= HOUR


def test_a_pause_of_a_night_does_not_make_a_daily_writer_of_one_that_commits_each_minute() -> None:
    days = [d * DAY + i * MINUTE for d in range(12) for i in range(12 * 60)]
    morning = [12 * DAY + i * MINUTE for i in range(60)]
    assert interval_between(days) == MINUTE
    assert interval_between(days + morning) == MINUTE


def interval_by_definition(clocks: list[int]) -> int:
    """Return the median over every gap in which a moment lies, found by looking at all of them."""
    moments = [clocks[-1] - 2**i * MINUTE for i in range(15)]
    found = sorted(b - a for a, b in pairwise(clocks) if any(a < m <= b for m in moments))
    return found[len(found) // 2] if found else (clocks[-1] - clocks[0]) // (len(clocks) - 1)


@given(gaps)
def test_each_gap_in_which_a_moment_lies_counts_once(gaps: list[int]) -> None:
    clocks = list(accumulate(gaps, initial=0))
    assert interval_between(clocks) == interval_by_definition(clocks)


@pytest.mark.parametrize("pause", [7 * MINUTE, 30 * MINUTE, 5 * HOUR, DAY, 30 * DAY, 400 * DAY])
@pytest.mark.parametrize("before", [5 * MINUTE, HOUR, DAY])
@pytest.mark.parametrize("every", [SECOND, 5 * SECOND, MINUTE])
def test_a_pause_is_one_gap_however_long(every: int, before: int, pause: int) -> None:
    clocks = list(range(0, before + 1, every))
    load = [before + pause + at for at in range(0, 20 * MINUTE, every)]
    for last in range(len(load)):
        if load[last] - load[0] > 2 * MINUTE:
            assert interval_between(clocks + load[: last + 1]) == every, last


def test_an_interval_needs_two_commits() -> None:
    assert interval_between([]) is None
    assert interval_between([5]) is None
    assert interval_between([5, 7]) == 2


def test_silence_counts_only_after_two_intervals_and_then_ends_the_load() -> None:
    commits = written_every(HOUR, 50.0, DAY)
    assert measured_until(DAY + QUIET * HOUR, DAY, HOUR) == DAY
    now, seen = DAY, []
    while now < DAY + (QUIET + INTERVALS) * HOUR:
        now += HOUR
        seen.append(rates_of(commits, measured_until(now, DAY, HOUR), HOUR).over[3])
    assert seen == pytest.approx([50.0, 50.0, 37.5, 25.0, 12.5, 0.0])
