"""In which order a backlog of uneven segments is read: by the amount of data at hand, as PDP-28
found it, by a common clock, and sorted. A simulation with a fixed seed; it prints its table.

Clocks are places in write order. A commit takes what was written during a tick, so within a tick a
clock orders nothing.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from random import Random
from typing import NamedTuple

EVENTS = 1 << 16
SEGMENTS = 16
TICK = EVENTS >> 12  # events per commit
BUFFER = EVENTS // 1000  # events of a segment that a reader holds in memory
BUDGET = EVENTS // 16


class Order(NamedTuple):
    """Of an order of reading: the part of all pairs that is inverted, the most places by which an
    event is late, and how far the newest read event is ahead of the oldest unread one, at a
    quarter, a half and three quarters."""

    inversions: float
    lateness: int
    holes: tuple[int, ...]


def backlog(seed: int) -> list[list[int]]:
    """Per segment its events, as places in write order: shares by Zipf's law, in bursts; one falls
    silent half-way, and one begins late."""
    random = Random(seed)
    shares = [1 / (i + 1) ** 1.1 for i in range(SEGMENTS)]
    segments: list[list[int]] = [[] for _ in range(SEGMENTS)]
    step = EVENTS // 256
    for start in range(0, EVENTS, step):
        weights = [share * random.lognormvariate(0, 0.8) for share in shares]
        weights[3] *= start < EVENTS // 2
        weights[5] *= start > EVENTS // 4
        for place in range(start, start + step):
            segments[random.choices(range(SEGMENTS), weights)[0]].append(place)
    return segments


def most_data_first(segments: Sequence[Sequence[int]]) -> Iterator[int]:
    """Always the segment of which most events are in memory, all of those; the next ones are then
    fetched. Of several with as many, the one that was read longest ago."""
    at = [0] * len(segments)
    last = [0] * len(segments)
    now = 0
    while True:
        held = [min(BUFFER, len(events) - at[i]) for i, events in enumerate(segments)]
        if not any(held):
            return
        i = max(range(len(segments)), key=lambda i: (held[i], -last[i]))
        yield from segments[i][at[i] : at[i] + held[i]]
        at[i] += held[i]
        now += 1
        last[i] = now


def batches(segments: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Batches that end in all segments at one clock, within the budget: tick, segment, place."""
    every = sorted((place // TICK, i, place) for i, found in enumerate(segments) for place in found)
    batch: list[tuple[int, int, int]] = []
    for _, tick in groupby(every, key=lambda event: event[0]):
        events = list(tick)
        if batch and len(batch) + len(events) > BUDGET:
            yield batch
            batch = []
        batch += events
    yield batch


def by_clock(segments: Sequence[Sequence[int]]) -> Iterator[int]:
    """Sorted within each batch by clock and segment; the ranks in a commit are not known."""
    return (place for batch in batches(segments) for _, _, place in sorted(batch))


def by_clock_and_rank(segments: Sequence[Sequence[int]]) -> Iterator[int]:
    """Sorted within each batch by clock and rank: `order="stream"`."""
    return (place for batch in batches(segments) for place in sorted(p for _, _, p in batch))


def inverted(places: Sequence[int]) -> int:
    """How many pairs are in the other order than they were written in: by merging."""
    runs, count = [[place] for place in places], 0
    while len(runs) > 1:
        merged = []
        for left, right in zip(runs[::2], [*runs[1::2], []], strict=False):
            at = 0
            for place in right:
                at = bisect_left(left, place, at)
                count += len(left) - at
            merged.append(sorted(left + right))
        runs = merged
    return count


def measured(read: Callable[[Sequence[Sequence[int]]], Iterator[int]], seed: int) -> Order:
    places = list(read(backlog(seed)))
    assert sorted(places) == list(range(EVENTS)), "each event once"
    newest, lateness = 0, 0
    for place in places:
        lateness = max(lateness, newest - place)
        newest = max(newest, place)
    holes = []
    for part in (1, 2, 3):
        cut = EVENTS * part // 4
        holes.append(max(0, max(places[:cut]) - min(places[cut:])))
    return Order(inverted(places) / (EVENTS * (EVENTS - 1) / 2), lateness, tuple(holes))


def test_reading_by_a_common_clock_is_in_order_where_most_data_first_is_far_from_it() -> None:
    table = {
        read.__name__: measured(read, seed=7)
        for read in (most_data_first, by_clock, by_clock_and_rank)
    }
    for name, found in table.items():
        holes = " / ".join(f"{hole:,}" for hole in found.holes)
        print(f"{name:18} {found.inversions:9.4%} inverted, at most {found.lateness:,} late, "
              f"ahead by {holes} of {EVENTS:,} events")  # fmt: skip
    naive, clock, exact = table.values()
    assert naive.inversions > 0.2
    assert min(naive.holes) > EVENTS / 2
    assert clock.inversions < 0.0002
    assert clock.lateness < TICK
    assert exact == Order(0.0, 0, (0, 0, 0))


def test_inverted_pairs_are_counted() -> None:
    random = Random(1)
    places = random.sample(range(100), 60)
    pairs = [(a, b) for i, a in enumerate(places) for b in places[i + 1 :]]
    assert inverted(places) == sum(a > b for a, b in pairs)
