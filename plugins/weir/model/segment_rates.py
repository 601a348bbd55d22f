"""The rates of a segment, from the history of its commits (semantics 7.1). Pure.

Times are microseconds since 1970, rates are per second. Batches are appended once an hour or once a
day as often as continuously, so a rate is never measured over less than four of the stream's own
intervals between commits, and a commit counts for the whole time since the one before it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weir.model.clock import SECOND

MINUTE = 60 * SECOND
WINDOWS = (2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE)
INTERVALS = 4  # a window has at least so many intervals between commits
QUIET = 2  # after so many intervals without a commit, time without events counts
# The moments before the last commit whose gaps make the interval: 1, 2, 4 minutes ... 11 days.
PROBES = tuple(MINUTE << i for i in range(15))


class Commit(NamedTuple):
    """What one commit added to a segment.

    `since`: the clock of the segment's commit before it, or of the segment's creation: `amount`
    (events or bytes) is spread evenly over the time from there to `clock`.
    """

    clock: int
    since: int
    amount: int


@dataclass(frozen=True)
class Rates:
    """Rates per second over four windows, and the microseconds that each window really has."""

    over: tuple[float, float, float, float]
    windows: tuple[int, int, int, int]


def interval_between(clocks: Sequence[int]) -> int | None:
    """Return a stream's own interval between commits; None if it has fewer than two.

    `clocks`: of the stream's commits, ascending. Each of the moments 1, 2, 4 ...
    minutes before the last commit falls into a gap between two commits; the interval is the median
    of those gaps, each taken once. So hundreds of
    commits within a minute of each hour have an interval of an hour, and a pause, however many of
    the moments lie in it, does not make a daily writer of a continuous one.
    """
    if len(clocks) < 2:
        return None
    ends = {bisect_left(clocks, clocks[-1] - probe) for probe in PROBES} - {0}
    gaps = [clocks[end] - clocks[end - 1] for end in ends]
    # All commits within a minute: the first of them is the only earlier moment.
    gaps = gaps or [(clocks[-1] - clocks[0]) // (len(clocks) - 1)]
    return sorted(gaps)[len(gaps) // 2]


def measured_until(now: int, last: int, interval: int) -> int:
    """Return where the windows end: at the stream's last commit, as the events since then are still
    to be committed; later, once `QUIET` intervals have passed without a commit.
    """
    return max(last, now - QUIET * interval)


def windows_of(interval: int) -> tuple[int, int, int, int]:
    """Return the windows for a stream with this interval, in microseconds."""
    a, b, c, d = (max(window, INTERVALS * interval) for window in WINDOWS)
    return a, b, c, d


def rates_of(commits: Iterable[Commit], until: int, interval: int) -> Rates:
    """Return a segment's rates over the windows that end at `until` (see `measured_until`).

    `commits`: at least those of the segment whose clock lies in the longest window. `interval`: the
    stream's own (see `interval_between`).
    """
    windows = windows_of(interval)
    sums = [0.0, 0.0, 0.0, 0.0]
    for clock, since, amount in commits:
        spread = max(clock - since, 1)
        for i, window in enumerate(windows):
            inside = min(clock, until) - max(clock - spread, until - window)
            if inside > 0:
                sums[i] += amount * (inside / spread)
    a, b, c, d = (total * SECOND / w for total, w in zip(sums, windows, strict=True))
    return Rates((a, b, c, d), windows)
