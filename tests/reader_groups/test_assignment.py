"""Who owns which segment: fair, sticky, complete, and the same for whoever computes it."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from weir.reader_groups.assignment import assign

READERS = ["a", "b", "c", "d"]
loads_of = st.dictionaries(st.integers(0, 30), st.integers(0, 50), max_size=14)
readers_of = st.lists(st.sampled_from(READERS), unique=True, min_size=1)


def totals(loads: dict[int, int], result: dict[int, str], readers: list[str]) -> dict[str, int]:
    found = dict.fromkeys([*readers, *result.values()], 0)
    for segment, owner in result.items():
        found[owner] += max(1, loads[segment])
    return found


def is_fair(
    loads: dict[int, int], result: dict[int, str], readers: list[str], pinned: frozenset[int]
) -> bool:
    """Moving one segment would not lower the larger load of the two readers concerned."""
    load = totals(loads, result, readers)
    for segment, owner in result.items():
        if segment in pinned:
            continue
        for other in readers:
            weight = max(1, loads[segment])
            after = max(load[owner] - weight, load[other] + weight)
            if other != owner and after < max(load[owner], load[other]):
                return False
    return True


@st.composite
def worlds(
    draw: st.DrawFn,
) -> tuple[dict[int, int], dict[int, str], list[str], frozenset[int]]:
    """Loads, owners (some of whom are gone), readers, and the segments of open batches."""
    loads, readers = draw(loads_of), draw(readers_of)
    random = Random(draw(st.integers()))
    owners = {s: random.choice(READERS) for s in loads if random.random() < 0.6}
    pinned = frozenset(s for s in owners if random.random() < 0.2)
    return loads, owners, readers, pinned


@settings(max_examples=400)
@given(worlds())
def test_every_segment_gets_one_of_the_readers_and_the_shares_are_fair(
    world: tuple[dict[int, int], dict[int, str], list[str], frozenset[int]],
) -> None:
    loads, owners, readers, pinned = world
    result = assign(loads, owners, readers, pinned)
    assert set(result) == set(loads)
    assert all(result[s] == owners[s] for s in pinned)
    assert all(owner in readers for s, owner in result.items() if s not in pinned)
    assert is_fair(loads, result, readers, pinned)


@settings(max_examples=400)
@given(worlds())
def test_shares_that_are_fair_stay_as_they_are(
    world: tuple[dict[int, int], dict[int, str], list[str], frozenset[int]],
) -> None:
    loads, owners, readers, pinned = world
    once = assign(loads, owners, readers, pinned)
    assert assign(loads, once, readers, pinned) == once
    # Also what was fair with only some segments assigned: those stay, whoever gets the others.
    kept = {s: o for s, o in owners.items() if o in readers}
    if set(kept) == set(loads) and is_fair(loads, kept, readers, pinned):
        assert assign(loads, owners, readers, pinned) == kept


@given(st.integers(1, 60), readers_of)
def test_equal_loads_differ_by_at_most_one(count: int, readers: list[str]) -> None:
    result = assign(dict.fromkeys(range(count), 7), {}, readers)
    shares = [list(result.values()).count(reader) for reader in readers]
    assert max(shares) - min(shares) <= 1


@given(st.integers(1, 40), readers_of)
def test_a_reader_that_joins_takes_its_share_and_nothing_else_moves(
    count: int, readers: list[str]
) -> None:
    loads = dict.fromkeys(range(count), 7)
    before = assign(loads, {}, readers)
    after = assign(loads, before, [*readers, "new"])
    moved = [s for s in loads if before[s] != after[s]]
    assert {after[s] for s in moved} <= {"new"}
    assert len(moved) == count // (len(readers) + 1)


@given(st.integers(1, 40), st.lists(st.sampled_from(READERS), unique=True, min_size=2))
def test_of_a_reader_that_left_only_its_own_segments_move(count: int, readers: list[str]) -> None:
    loads = dict.fromkeys(range(count), 7)
    before = assign(loads, {}, readers)
    gone, *rest = readers
    after = assign(loads, before, rest)
    assert all(after[s] == owner for s, owner in before.items() if owner != gone)


@settings(max_examples=200)
@given(worlds(), st.integers())
def test_the_answer_depends_on_nothing_but_the_arguments(
    world: tuple[dict[int, int], dict[int, str], list[str], frozenset[int]], seed: int
) -> None:
    loads, owners, readers, pinned = world
    # Each reader reads the owners in an order of its own; loads and readers come sorted.
    shuffled = list(owners.items())
    Random(seed).shuffle(shuffled)
    assert assign(loads, dict(shuffled), readers, pinned) == assign(loads, owners, readers, pinned)


def test_a_large_segment_outweighs_many_small_ones() -> None:
    result = assign({0: 100, 1: 10, 2: 10, 3: 10}, {}, ["a", "b"])
    assert result == {0: "a", 1: "b", 2: "b", 3: "b"}


def test_segments_of_open_batches_count_but_do_not_move() -> None:
    pinned = frozenset({0, 1})
    result = assign({0: 10, 1: 10, 2: 10}, {0: "a", 1: "a", 2: "a"}, ["a", "b"], pinned)
    assert result == {0: "a", 1: "a", 2: "b"}


def test_without_readers_only_open_batches_keep_their_segments() -> None:
    assert assign({0: 1, 1: 1}, {0: "a", 1: "b"}, [], frozenset({0})) == {0: "a"}


def test_four_hundred_segments_are_assigned_at_once() -> None:
    random = Random(1)
    loads = {i: random.randint(0, 10_000) for i in range(400)}
    readers = [f"r{i}" for i in range(16)]
    result = assign(loads, dict.fromkeys(loads, "r0"), readers)
    assert is_fair(loads, result, readers, frozenset())
