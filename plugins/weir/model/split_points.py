"""Where to split a segment, so that the pieces carry equal loads. Pure.

Positions of the key space are whole multiples of 2^-53, the *steps* (`weir.spark.base.routing`). A
double holds each of them exactly, so a key can be cut off to the last bit.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from weir.errors import InvalidInput
from weir.model.key_space import STEPS, KeyRange, check_range, even_split
from weir.model.segment import Segment


class Load(NamedTuple):
    """How much was appended to a part of the key space.

    Without a key, the part begins at `position` and ends where the next load begins. With a key, it
    is that position alone. Loads sort by position.
    """

    position: float
    weight: int  # events or bytes
    key: str | None = None


class HotSegment(NamedTuple):
    """A segment to be split, and what its split points depend on.

    `pieces`: into how many. `rate`: its events or bytes (`unit`) per second; a key is too hot if it
    alone has more than `target_rate` of it. `since`: the clock after which its events are recent.
    """

    stream_id: int
    segment: Segment
    pieces: int
    rate: float
    target_rate: int
    unit: str
    since: int


class HotKey(NamedTuple):
    """A routing key that alone exceeds what a segment should carry."""

    key: str
    position: float
    share: float  # of the weight of the segment


class SplitPoints(NamedTuple):
    """Where to split a segment.

    `points`: the bounds between the pieces, ascending, strictly inside the segment; empty if no cut
    would divide its load. `shares`: the share of the load of each piece; empty if there is no load.
    `hot_keys`: the heaviest first.
    """

    points: tuple[float, ...]
    shares: tuple[float, ...]
    hot_keys: tuple[HotKey, ...]


def split_points(
    low: float, high: float, loads: Iterable[Load], pieces: int, target: float | None = None
) -> SplitPoints:
    """Return where to split the range `[low, high)` into at most `pieces` pieces.

    `loads`: what was appended recently; loads outside the range are not counted. `target`: the
    share of the load that a piece should carry at most, above 0 (default: 1 / `pieces`).

    The largest piece is as small as whole keys allow, and the other pieces are as equal as they can
    be beside it. A key above the target is named as hot. Its bounds are exact, so it is alone in a
    piece if pieces suffice, and a segment that has nothing but one key is not split. If hot keys
    leave little to divide, there are fewer pieces: as many as it takes to isolate them and to keep
    the other pieces within the target. Without any load, the pieces are equal ranges.

    Raises InvalidInput for an empty range, and for less than 1 piece.
    """
    check_range(KeyRange(low, high))
    if pieces < 1:
        raise InvalidInput(
            "argument_invalid",
            f"a segment can't be split into {pieces} pieces; give at least 1.",
        )
    parts = _merged(low, high, loads)
    if not parts:
        return SplitPoints(_equal_ranges(low, high, pieces), (), ())
    weights = [part.weight for part in parts]
    total = sum(weights)
    most = total * (1 / pieces if target is None else target)
    hot = [part.key is not None and part.weight > most for part in parts]
    count = min(pieces, len(parts))
    if any(hot):
        count = min(count, max(2, _needed(weights, hot, most)))
    bounds = _balanced(weights, count)
    points = tuple(
        # A hot key ends one step after its position; other loads reach up to the next one.
        (_step(parts[i - 1].position) + 1) / STEPS if hot[i - 1] else parts[i].position
        for i in bounds[1:-1]
    )
    shares = tuple(sum(weights[a:b]) / total for a, b in pairwise(bounds))
    heaviest = sorted(
        (HotKey(str(part.key), part.position, part.weight / total)
         for part, is_hot in zip(parts, hot, strict=True) if is_hot),
        key=lambda one: (-one.share, one.position),
    )  # fmt: skip
    return SplitPoints(points, shares, tuple(heaviest))


def first_step(bound: float) -> int:
    """Return the first step at or after a bound of a range."""
    return math.ceil(bound * STEPS)  # exact: a multiplication by a power of two


def _step(position: float) -> int:
    return int(position * STEPS)


def _merged(low: float, high: float, loads: Iterable[Load]) -> list[Load]:
    """Return the loads within a range by position, one for each step."""
    found: list[Load] = []
    for load in sorted(one for one in loads if low <= one.position < high and one.weight > 0):
        if found and _step(found[-1].position) == _step(load.position):
            heavier = max(found[-1], load, key=lambda one: (one.key is not None, one.weight))
            found[-1] = heavier._replace(weight=found[-1].weight + load.weight)
        else:
            found.append(load._replace(position=_step(load.position) / STEPS))
    return found


def _equal_ranges(low: float, high: float, pieces: int) -> tuple[float, ...]:
    """Return the bounds between equal ranges, as many as there is a step for."""
    first, past = first_step(low), first_step(high)
    if past - first < 2:
        return ()
    ranges = even_split(min(pieces, past - first), KeyRange(low, high))
    # A step between two bounds lies in one piece; a piece without a step would never get an event.
    exact = {first_step(one.low): one.low for one in ranges[1:]}
    return tuple(exact[step] for step in sorted(exact) if first < step < past)


def _needed(weights: Sequence[int], hot: Sequence[bool], most: float) -> int:
    """Return how many pieces it takes if hot keys are alone and the other pieces within `most`."""
    count, filled, fresh = 0, 0, True
    for weight, is_hot in zip(weights, hot, strict=True):
        if is_hot or fresh or filled + weight > most:
            count, filled = count + 1, 0
        filled += weight
        fresh = is_hot
    return count


def _balanced(weights: Sequence[int], count: int) -> list[int]:
    """Divide weights into `count` runs and return their bounds, from 0 to the number of weights.

    The heaviest run is as light as possible; among such divisions the squares of the runs' weights
    have the least sum.
    """
    sums = [0, *accumulate(weights)]
    limit = _least_limit(sums, max(weights), count)
    furthest = _furthest(sums, limit, count)
    # Mirrored, the same rule gives the earliest bounds after which the rest fits into the runs.
    backward = [sums[-1] - one for one in reversed(sums)]
    earliest = [len(weights) - one for one in reversed(_furthest(backward, limit, count))]
    costs = {0: 0}
    chosen: list[dict[int, int]] = []
    for run in range(1, count + 1):
        window = range(earliest[run], furthest[run] + 1)
        costs, last = _best(sums, limit, costs, window)
        chosen.append(last)
    bounds = [len(weights)]
    for last in reversed(chosen):
        bounds.append(last[bounds[-1]])
    return bounds[::-1]


def _least_limit(sums: Sequence[int], heaviest: int, count: int) -> int:
    """Return the least limit with which `count` runs hold all weights."""
    low, high = max(heaviest, -(-sums[-1] // count)), sums[-1]
    while low < high:
        middle = (low + high) // 2
        if _furthest(sums, middle, count)[-1] == len(sums) - 1:
            high = middle
        else:
            low = middle + 1
    return low


def _furthest(sums: Sequence[int], limit: int, count: int) -> list[int]:
    """Return the furthest bounds that 0 to `count` runs reach, if each later run gets a weight."""
    found, end = [0], len(sums) - 1
    for run in range(1, count + 1):
        reached = bisect_right(sums, sums[found[-1]] + limit) - 1
        found.append(min(reached, end - (count - run)))
    return found


def _best(
    sums: Sequence[int], limit: int, costs: dict[int, int], window: range
) -> tuple[dict[int, int], dict[int, int]]:
    """Return for each bound in the window the least sum of squares up to it, and the bound before.

    `costs`: those sums for the bounds before, which are consecutive. The best bound before never
    moves back as the bound moves on, so each middle of the window halves what is left to search.
    """
    first, past = min(costs), max(costs) + 1
    least: dict[int, int] = {}
    last: dict[int, int] = {}
    open_ = [(window.start, window.stop, first, past)]
    while open_:
        low, high, begin, end = open_.pop()
        if low >= high:
            continue
        middle = (low + high) // 2
        within = bisect_left(sums, sums[middle] - limit)
        least[middle], last[middle] = min(
            (costs[before] + (sums[middle] - sums[before]) ** 2, before)
            for before in range(max(begin, within), min(end, middle))
        )
        open_.append((low, middle, begin, last[middle] + 1))
        open_.append((middle + 1, high, last[middle], end))
    return least, last


class Found(NamedTuple):
    """What was found about hot segments.

    `points`: by stream and segment. `failed`: the sentence, by stream.
    """

    points: dict[tuple[int, int], SplitPoints]
    failed: dict[int, str]
