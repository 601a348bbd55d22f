"""Who owns which segment: fair, sticky, complete, and the same for whoever computes it."""

from dataclasses import dataclass, field
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import cases, random_for
from tests.model.test_stream_cut import Remaining, Stream, positions, seeds
from weir.model.assignment import assign, unread_events
from weir.model.bounds import Graph, SegmentState
from weir.model.stream_cut import StreamCut

READERS = ["a", "b", "c", "d"]
loads_of = st.dictionaries(st.integers(0, 30), st.integers(0, 50), max_size=14)
readers_of = st.lists(st.sampled_from(READERS), unique=True, min_size=1)


def totals(loads: dict[int, int], result: dict[int, str], readers: list[str]) -> dict[str, int]:
    found = dict.fromkeys([*readers, *result.values()], 0)
    for segment, owner in result.items():
        found[owner] += max(1, loads[segment])
    return found


@dataclass
class World:
    """Loads, owners (some of whom are gone), readers, and segments that are held or reserved."""

    loads: dict[int, int]
    owners: dict[int, str]
    readers: list[str]
    held: frozenset[int] = frozenset()
    reserved: dict[int, frozenset[str]] = field(default_factory=dict)

    def assign(self, owners: dict[int, str] | None = None) -> dict[int, str]:
        return assign(
            self.loads, self.owners if owners is None else owners, self.readers,
            in_batches=self.held, reserved=self.reserved,
        )  # fmt: skip

    def may_own(self, segment: int, reader: str) -> bool:
        return reader in self.reserved.get(segment, self.readers)

    def is_fair(self, result: dict[int, str]) -> bool:
        """Moving one segment would not lower the larger load of the two readers concerned."""
        load = totals(self.loads, result, self.readers)
        for segment, owner in result.items():
            weight = max(1, self.loads[segment])
            for other in self.readers:
                after = max(load[owner] - weight, load[other] + weight)
                if (
                    segment not in self.held
                    and other != owner
                    and self.may_own(segment, other)
                    and after < max(load[owner], load[other])
                ):
                    return False
        return True


@st.composite
def worlds(draw: st.DrawFn) -> World:
    loads, readers = draw(loads_of), draw(readers_of)
    random = Random(draw(st.integers()))
    owners = {s: random.choice(READERS) for s in loads if random.random() < 0.6}
    held = frozenset(s for s in owners if random.random() < 0.2)
    kinds = [frozenset(random.sample(readers, random.randint(1, len(readers)))) for _ in range(2)]
    reserved = {s: random.choice(kinds) for s in loads if random.random() < 0.3}
    return World(loads, owners, readers, held, reserved)


@settings(max_examples=cases(400))
@given(worlds())
def test_every_segment_gets_one_of_its_readers_and_the_shares_are_fair(world: World) -> None:
    result = world.assign()
    assert set(result) == set(world.loads)
    assert all(result[s] == world.owners[s] for s in world.held)
    assert all(world.may_own(s, owner) for s, owner in result.items() if s not in world.held)
    assert world.is_fair(result)


@settings(max_examples=cases(400))
@given(worlds())
def test_shares_that_are_fair_stay_as_they_are(world: World) -> None:
    once = world.assign()
    assert world.assign(once) == once
    # Also what was fair with only some segments assigned: those stay, whoever gets the others.
    kept = {s: o for s, o in world.owners.items() if world.may_own(s, o)}
    if set(kept) == set(world.loads) and world.is_fair(kept):
        assert world.assign() == kept


@given(st.integers(1, 40), readers_of)
def test_of_a_reader_that_joins_and_leaves_again_only_its_own_share_moves(
    count: int, readers: list[str]
) -> None:
    loads = dict.fromkeys(range(count), 7)
    before = assign(loads, {}, readers)
    after = assign(loads, before, [*readers, "new"])
    moved = [s for s in loads if before[s] != after[s]]
    assert {after[s] for s in moved} <= {"new"}
    assert len(moved) == count // (len(readers) + 1)
    left = assign(loads, after, readers)
    assert all(left[s] == owner for s, owner in after.items() if owner != "new")


@settings(max_examples=cases(200))
@given(worlds(), st.integers())
def test_the_answer_depends_on_nothing_but_the_arguments(world: World, seed: int) -> None:
    # Each reader reads the owners in an order of its own; loads and readers come sorted.
    shuffled = list(world.owners.items())
    Random(seed).shuffle(shuffled)
    assert world.assign(dict(shuffled)) == world.assign()


rates_of = st.dictionaries(st.sampled_from(READERS), st.integers(-2, 8).map(lambda n: 2 ** (n / 2)))


@pytest.mark.timeout(60)
@settings(max_examples=cases(2000))
@given(st.lists(st.integers(1, 3), max_size=14), readers_of, rates_of, st.integers())
def test_moves_between_readers_of_unequal_rates_come_to_an_end(
    loads: list[int], readers: list[str], rates: dict[str, float], seed: int
) -> None:
    random = Random(seed)
    owners = {segment: random.choice(READERS) for segment in range(len(loads))}
    found = assign(dict(enumerate(loads)), owners, readers, rates=rates)
    assert set(found.values()) <= {*readers}
    assert found == assign(dict(enumerate(loads)), found, readers, rates=rates)


@pytest.mark.timeout(60)
def test_a_move_that_would_only_swap_the_loads_of_two_readers_is_none() -> None:
    # 5 and 4 segments of readers whose rate, the average, is no whole number: the loads are even as
    # far as numbers with a fraction say.
    owners = dict.fromkeys(range(5), "c") | dict.fromkeys(range(5, 9), "d") | {9: "a", 10: "b"}
    loads = dict.fromkeys(range(9), 1) | {9: 24, 10: 26}
    rates = {"a": 2**0.5, "b": 1.0}
    assert assign(loads, owners, READERS, in_batches={9, 10}, rates=rates) == owners


def test_without_readers_only_open_batches_keep_their_segments() -> None:
    assert assign({0: 1, 1: 1}, {0: "a", 1: "b"}, [], in_batches={0}) == {0: "a"}


small_worlds = st.tuples(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),  # loads
    st.lists(st.sampled_from("abz"), min_size=5, max_size=5),  # owners; z is gone
)


def every_share(loads: dict[int, int], readers: list[str]) -> list[dict[int, str]]:
    """By brute force: all ways to divide the segments that are fair."""
    ways = (dict(zip(loads, way, strict=True)) for way in product(readers, repeat=len(loads)))
    return [way for way in ways if World(loads, {}, readers).is_fair(way)]


@settings(max_examples=cases(300))
@given(small_worlds)
def test_no_move_is_in_vain(world: tuple[list[int], list[str]]) -> None:
    loads, readers = dict(enumerate(world[0])), ["a", "b", "c"]
    owners = dict(zip(loads, world[1], strict=False))
    result = assign(loads, owners, readers)
    assert result in every_share(loads, readers)
    for segment, owner in owners.items():
        if owner in readers and result[segment] != owner:
            assert not World(loads, owners, readers).is_fair({**result, segment: owner})


@given(small_worlds)
def test_of_equal_loads_as_few_move_as_can_be(world: tuple[list[int], list[str]]) -> None:
    loads, readers = dict.fromkeys(range(len(world[0])), 7), ["a", "b", "c"]
    owners = dict(zip(loads, world[1], strict=False))

    def moved(way: dict[int, str]) -> int:
        return sum(way[segment] != owner for segment, owner in owners.items())

    fewest = min(map(moved, every_share(loads, readers)))
    assert moved(assign(loads, owners, readers)) == fewest


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_of_equal_weights_those_that_lag_most_are_spread_over_the_readers(
    behind: list[int],
) -> None:
    loads = dict.fromkeys(range(len(behind)), 7)
    result = assign(loads, {}, ["a", "b"], lags=dict(enumerate(behind)))
    for least in range(6):
        lagging = [result[segment] for segment in loads if behind[segment] >= least]
        assert abs(lagging.count("a") - lagging.count("b")) <= 1


def test_lag_moves_nothing() -> None:
    owners = {0: "a", 1: "b", 2: "a", 3: "b"}
    assert assign(dict.fromkeys(owners, 7), owners, ["a", "b"], lags={0: 99, 2: 99}) == owners


@settings(max_examples=cases(200))
@given(positions(1), seeds)
def test_the_load_of_a_position_is_what_its_keys_have_to_the_tail(
    world: tuple[Stream, list[Remaining]], seed: int
) -> None:
    stream, [left] = world
    random = Random(seed)
    sizes = {segment: random.randint(0, 50) for segment in stream.segments}
    present = StreamCut(stream.listing(left)).present
    # By brute force, per position and later segment: the part of the keys that they share.
    expected = dict.fromkeys(present, 0.0)
    unread = {segment for segment, _ in left}
    for segment in present:
        expected[segment] = max(0, sizes[segment] - present[segment])
        for later in unread - present.keys():
            common = min(segment.key_high, later.key_high) - max(segment.key_low, later.key_low)
            width = later.key_high - later.key_low
            expected[segment] += sizes[later] * max(0.0, common) / width
    graph = Graph(SegmentState(s, max(sizes[s], present.get(s, 0)), None) for s in unread)
    found = unread_events(present, graph)
    assert found.keys() == present.keys()
    assert all(abs(found[segment] - expected[segment]) <= 1 for segment in present)


def test_two_thousand_segments_are_assigned_at_once() -> None:
    random = random_for("two thousand")
    loads = {i: random.randint(0, 10_000) for i in range(2_000)}
    readers = [f"r{i}" for i in range(16)]
    result = assign(loads, dict.fromkeys(loads, "r0"), readers)
    assert World(loads, {}, readers).is_fair(result)
