"""Stream cuts against a model that knows only events.

The model of a cut is the set of what it has not yet passed: the events, and one end mark per
segment (that of an active segment is never passed). The model walks the graph of segments, epoch
by epoch, on a grid of cells; the code under test sees only ranges and ids.
"""

import json
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import cases
from weir.errors import InvalidInput
from weir.model.segment import Segment, segment_id
from weir.model.stream_cut import (
    FUTURE,
    Offset,
    StreamCut,
    at_or_before,
    check_valid,
    join,
    meet,
)

GRID = 8
ANY_OFFSET: list[Offset] = [FUTURE, -1, 0, 1, 2, 3]
Remaining = frozenset[tuple[Segment, int]]


def cells(segments: Iterable[Segment]) -> set[int]:
    return {c for s in segments for c in range(int(s.key_low * GRID), int(s.key_high * GRID))}


class Stream:
    """A history of scales and rolls, with boundaries in cells."""

    def __init__(self, *bounds: int) -> None:
        self.active: list[Segment] = []
        self.predecessors: dict[Segment, set[Segment]] = {}
        self.sizes: dict[Segment, int] = {}
        self.epochs: list[list[Segment]] = []
        self._numbers = 0
        self.scale(*bounds)

    def scale(self, *bounds: int) -> "Stream":
        """Replace what lies between the first and the last boundary."""
        replaced = set(range(bounds[0], bounds[-1]))
        created = []
        for low, high in pairwise(bounds):
            created.append((self._numbers, low / GRID, high / GRID))
            self._numbers += 1
        return self._advance([s for s in self.active if not cells([s]) & replaced], created)

    def roll(self, epoch: int) -> "Stream":
        """Commit a transaction of a past epoch: it is duplicated, and then the active one."""
        for duplicated in (self.epochs[epoch], self.active):
            self._advance([], [(s.number, s.key_low, s.key_high) for s in duplicated])
        return self

    def _advance(self, kept: list[Segment], created: list[tuple[int, float, float]]) -> "Stream":
        epoch = len(self.epochs)
        new = [Segment(segment_id(number, epoch), low, high) for number, low, high in created]
        for s in new:
            self.predecessors[s] = {p for p in self.active if cells([p]) & cells([s])}
            self.sizes[s] = 1
        self.active = kept + new
        self.epochs.append(self.active)
        return self

    @property
    def segments(self) -> list[Segment]:
        return list(self.predecessors)

    def ends(self) -> dict[int, int]:
        return {s.segment_id: size for s, size in self.sizes.items()}

    def everything(self) -> Remaining:
        return frozenset((s, i) for s in self.segments for i in range(self.sizes[s] + 1))

    def next_of(self, remaining: Remaining) -> list[tuple[Segment, int]]:
        """What can be passed next, given what remains."""
        left = {s for s, _ in remaining}
        return [
            (s, i)
            for s, i in sorted(remaining)
            if (s, i - 1) not in remaining
            and not self.predecessors[s] & left
            and not (s in self.active and i == self.sizes[s])
        ]

    def unpassed(self, listed: Iterable[Segment]) -> set[Segment]:
        """U: the listed segments and their descendants."""
        found = set(listed)
        for s in self.segments:
            if self.predecessors[s] & found:
                found.add(s)
        return found

    def listing(self, remaining: Remaining) -> dict[Segment, Offset]:
        """The canonical cut of a set of remaining events."""
        left = {s for s, _ in remaining}
        result: dict[Segment, Offset] = {}
        for s in left:
            waiting = self.predecessors[s] & left
            if not waiting:
                result[s] = min(i for t, i in remaining if t == s)
            elif not cells([s]) <= cells(waiting):
                result[s] = FUTURE
        return result

    def remaining(self, cut: StreamCut) -> Remaining:
        return frozenset(
            (s, i)
            for s in self.unpassed(cut.offsets)
            for i in range(cut.present.get(s, 0), self.sizes[s] + 1)
        )

    def is_valid(self, listing: dict[Segment, Offset]) -> bool:
        left = self.unpassed(listing)
        for s in left:
            waiting, offset = self.predecessors[s] & left, listing.get(s)
            if not waiting and not (isinstance(offset, int) and 0 <= offset <= self.sizes[s]):
                return False
            if waiting and offset is None and not cells([s]) <= cells(waiting):
                return False
            if waiting and isinstance(offset, int):
                return False
        return cells(listing) == set(range(GRID))

    def accepts(self, listing: dict[Segment, Offset]) -> bool:
        """What Weir says, given the segments between the oldest and the newest listed epoch."""
        epochs = [s.epoch for s in listing] or [0]
        window = [s for s in self.segments if min(epochs) <= s.epoch <= max(epochs)]
        return accepts(self, StreamCut(listing), window)


def accepts(stream: Stream, cut: StreamCut, later: Iterable[Segment]) -> bool:
    try:
        check_valid(cut, later, stream.ends())
    except InvalidInput:
        return False
    return True


def frontiers(stream: Stream) -> list[Remaining]:
    """All of them."""
    found = [stream.everything()]
    for remaining in found:
        for event in stream.next_of(remaining):
            if (after := remaining - {event}) not in found:
                found.append(after)
    return found


SMALL = {
    "merged, then split": lambda: Stream(0, 4, 8).scale(0, 8).scale(0, 4, 8),
    "a boundary moves, then a split": lambda: Stream(0, 4, 8).scale(0, 6, 8).scale(0, 2, 6),
    "three become two": lambda: Stream(0, 2, 6, 8).scale(0, 4, 8),
    "a roll over a merge": lambda: Stream(0, 4, 8).scale(0, 8).roll(0),
}
each_small_stream = pytest.mark.parametrize("build", SMALL.values(), ids=SMALL)


def random_stream(seed: int, operations: int) -> Stream:
    random = Random(seed)

    def cut_up(low: int, high: int) -> tuple[int, ...]:
        inner = [key for key in range(low + 1, high) if random.random() < 0.3]
        return (low, *inner, high)

    stream = Stream(*cut_up(0, GRID))
    for _ in range(operations):
        if random.random() < 0.2:
            stream.roll(random.randrange(len(stream.epochs)))
            continue
        in_order = sorted(stream.active, key=lambda s: s.key_low)
        first = random.randrange(len(in_order))
        block = in_order[first : first + random.randint(1, 3)]
        low, high = int(block[0].key_low * GRID), int(block[-1].key_high * GRID)
        stream.scale(*cut_up(low, high))
    for s in stream.segments:
        stream.sizes[s] = random.randint(0, 2)
    return stream


def advance(stream: Stream, remaining: Remaining, random: Random) -> Remaining:
    """Read on from there, some parts of the key space much faster than others."""
    speed = [random.random() ** 4 + 1e-9 for _ in range(GRID)]
    pace = {s: min(speed[cell] for cell in cells([s])) for s in stream.segments}
    for _ in range(random.randint(0, len(remaining))):
        ready = stream.next_of(remaining)
        if not ready:
            break
        remaining -= {random.choices(ready, [pace[s] for s, _ in ready])[0]}
    return remaining


def mutate(stream: Stream, listing: dict[Segment, Offset], random: Random) -> None:
    """Change one entry, or mix epochs: a tiling of the key space from whatever fits."""
    if random.random() < 0.4:
        listing.clear()
        reached = 0.0
        while reached < 1.0:
            segment = random.choice([s for s in stream.segments if s.key_low == reached])
            listing[segment] = random.randint(0, stream.sizes[segment])
            reached = segment.key_high
    segment = random.choice([*listing, *stream.segments])
    if random.random() < 0.4:
        listing.pop(segment, None)
    elif random.random() < 0.6:
        listing[segment] = random.choice(ANY_OFFSET)


def further(
    stream: Stream, listing: dict[Segment, Offset], random: Random
) -> dict[Segment, Offset]:
    """The same cut with some of the future entries that need not be listed."""
    later = sorted(stream.unpassed(listing) - set(listing))
    more = random.sample(later, random.randint(0, len(later)))
    return listing | dict.fromkeys(more, FUTURE)


World = tuple[Stream, list[Remaining]]
thoroughly = settings(max_examples=cases(500), deadline=None)
seeds = st.integers(0, 2**32)
streams = st.builds(random_stream, seeds, st.integers(1, 12))


@st.composite
def positions(draw: st.DrawFn, count: int) -> World:
    """A stream and what is left of it at some frontiers, of which later ones may follow earlier."""
    stream, random = draw(streams), Random(draw(seeds))
    found = [advance(stream, stream.everything(), random)]
    for _ in range(count - 1):
        start = random.choice([stream.everything(), *found])
        found.append(advance(stream, start, random))
    return stream, found


def cuts(stream: Stream, found: Iterable[Remaining]) -> list[StreamCut]:
    return [StreamCut(stream.listing(remaining)) for remaining in found]


@thoroughly
@given(positions(1))
def test_every_frontier_is_a_valid_cut_that_leaves_the_same_events(world: World) -> None:
    stream, [left] = world
    listing = stream.listing(left)
    assert stream.is_valid(listing)
    assert stream.accepts(listing)
    assert stream.remaining(StreamCut(listing)) == left


@thoroughly
@given(positions(1))
def test_contains_says_whether_a_segment_is_not_yet_passed(world: World) -> None:
    stream, [left] = world
    [cut] = cuts(stream, [left])
    assert {s for s in stream.segments if cut.contains(s)} == {s for s, _ in left}


@thoroughly
@given(positions(2))
def test_order_is_inclusion(world: World) -> None:
    stream, [left, right] = world
    a, b = cuts(stream, [left, right])
    assert at_or_before(a, b) is (right <= left)
    assert at_or_before(b, a) is (left <= right)
    assert (a == b) is (left == right)


@thoroughly
@given(positions(4))
def test_meet_is_union_and_join_is_intersection(world: World) -> None:
    stream, found = world
    a, b, c, d = cuts(stream, found)
    assert [meet([a, b, c, d])] == cuts(stream, [frozenset.union(*found)])
    assert [join(a, b)] == cuts(stream, [found[0] & found[1]])
    assert meet([a]) == join(a, a) == a


@thoroughly
@given(positions(1), seeds)
def test_further_future_entries_change_nothing(world: World, seed: int) -> None:
    stream, [left] = world
    listing = stream.listing(left)
    longer = StreamCut(further(stream, listing, Random(seed)))
    assert longer == StreamCut(listing)
    assert hash(longer) == hash(StreamCut(listing))
    assert dict(longer.offsets) == listing


@thoroughly
@given(positions(1), seeds)
def test_validity_is_that_of_the_model(world: World, seed: int) -> None:
    stream, [left] = world
    random = Random(seed)
    listing = further(stream, stream.listing(left), random)
    mutate(stream, listing, random)
    assert stream.accepts(listing) is stream.is_valid(listing)


@each_small_stream
def test_of_all_listings_exactly_the_frontiers_are_accepted(build: Callable[[], Stream]) -> None:
    stream = build()
    found = frontiers(stream)
    # A frontier, and whatever of its unpassed segments one likes to name as future besides.
    expected = {
        frozenset((listing | dict.fromkeys(named, FUTURE)).items())
        for listing in map(stream.listing, found)
        for later in [stream.unpassed(listing) - set(listing)]
        for count in range(len(later) + 1)
        for named in combinations(later, count)
    }
    choices = [
        [(s, offset) for offset in (None, FUTURE, *range(stream.sizes[s] + 1))]
        for s in stream.segments
    ]
    listings = ({s: o for s, o in chosen if o is not None} for chosen in product(*choices))
    accepted = {frozenset(listing.items()) for listing in listings if stream.accepts(listing)}
    assert accepted == expected


@each_small_stream
def test_all_pairs_of_frontiers_of_a_small_stream_obey_order_meet_and_join(
    build: Callable[[], Stream],
) -> None:
    stream = build()
    found = frontiers(stream)
    by_remaining = {left: StreamCut(stream.listing(left)) for left in found}
    assert len(set(by_remaining.values())) == len(found)
    for left, right in product(found, found):
        a, b = by_remaining[left], by_remaining[right]
        assert at_or_before(a, b) is (right <= left)
        assert meet([a, b]) == by_remaining[left | right]
        assert join(a, b) == by_remaining[left & right]


@thoroughly
@given(positions(1), seeds)
def test_segments_across_a_seam_decide_as_all_segments_do(world: World, seed: int) -> None:
    stream, [left] = world
    listing, random = stream.listing(left), Random(seed)
    mutate(stream, listing, random)
    cut = StreamCut(listing)
    across = [
        s
        for s in stream.segments
        if any(
            s.key_low < seam.key < s.key_high and seam.older_id < s.segment_id < seam.newer_id
            for seam in cut.seams
        )
    ]
    assert accepts(stream, cut, across) is accepts(stream, cut, stream.segments)


@thoroughly
@given(positions(3))
def test_what_lies_below_the_head_is_not_needed(world: World) -> None:
    stream, found = world
    head, *others = cuts(stream, found)
    kept = [s for s in stream.segments if head.contains(s)]
    for cut in others:
        after = join(cut, head)
        assert accepts(stream, after, kept)
        assert (after == cut) is at_or_before(head, cut)


@thoroughly
@given(positions(1), seeds)
def test_text_and_json_give_the_same_cut_back(world: World, seed: int) -> None:
    stream, [left] = world
    cut = StreamCut(further(stream, stream.listing(left), Random(seed)))
    by_id = {s.segment_id: s for s in stream.segments}
    assert StreamCut.parse(cut.to_text(), by_id) == cut
    assert StreamCut.parse(json.dumps(cut.to_json()), by_id) == cut
    assert StreamCut.from_json(json.loads(json.dumps(cut.to_json())), by_id) == cut
