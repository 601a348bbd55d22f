"""A batch that is split: its halves are read in its place, by whoever holds it, in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Group, Reader, spans
from tests.world.streams import Lane
from weir.model.bisection import halve
from weir.model.bounds import Bound
from weir.model.segment import segment_name
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.reset import reset_reader_group


def split(group: Group, batch: Batch) -> None:
    split_batch(group.database, batch, "it failed")


def events(bounds: list[Bound]) -> list[tuple[int, int]]:
    return [(b.segment_id, offset) for b in bounds for offset in range(b.start, b.end)]


bounds = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.booleans()), max_size=8).map(
    lambda found: [
        Bound(1, i, start, start + count, completes)
        for i, (start, count, completes) in enumerate(found)
    ]
)


@given(bounds.filter(lambda found: len(events(found)) >= 2))
def test_halves_are_about_equal_and_together_the_whole_in_its_order(whole: list[Bound]) -> None:
    first, rest = halve(whole)
    assert events(first) + events(rest) == events(whole)
    assert 0 <= len(events(rest)) - len(events(first)) <= 1
    # Each segment that is completed is so once, by what reads its end.
    ends = [(b.segment_id, b.end) for b in [*first, *rest] if b.completes]
    assert ends == [(b.segment_id, b.end) for b in whole if b.completes]


def test_halves_are_read_in_the_place_of_the_batch_that_was_split(group: Group) -> None:
    reader = group.reader()
    split(group, reader.must_open())
    first = reader.must_open()
    assert (first.batch_id, first.attempt, spans(first)) == (2, 1, [("0.0", 0, 10)])
    split(group, first)
    assert reader.read_all() == [("0.0", 0, 5), ("0.0", 5, 10), ("1.0", 0, 10)]
    assert group.cut() == {"0.0": 10, "1.0": 10}
    assert [(b.batch_id, b.state, b.events, b.error) for b in group.batches()] == [
        (1, "split", 20, "it failed"), (2, "split", 10, "it failed"), (3, "committed", 5, None),
        (4, "committed", 5, None), (5, "committed", 10, None),
    ]  # fmt: skip
    sizes = {b.batch_id: b.bytes for b in group.batches()}
    assert sizes[1] == sizes[2] + sizes[5]
    assert sizes[2] == sizes[3] + sizes[4]


def test_the_halves_are_taken_over_whole(group: Group) -> None:
    first = group.reader("a")
    split(group, first.must_open())
    half = first.must_open()
    group.lapse("a")
    heir = group.reader("b")
    taken = heir.must_open()
    assert (taken.batch_id, taken.bounds, taken.attempt) == (half.batch_id, half.bounds, 2)
    for zombie in (lambda: split(group, half), lambda: first.commit(half)):
        with raises(f"batch_taken_over batch {half.batch_id} 'a'"):
            zombie()
    heir.commit(taken)
    assert heir.read_all() == [("1.0", 0, 10)]


def test_splitting_again_after_a_lost_connection_splits_once(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    split(group, batch)
    split(group, batch)
    with raises(f"batch_taken_over batch {batch.batch_id} replace"):
        reader.commit(batch)
    assert [(b.batch_id, b.state) for b in group.batches()] == [(1, "split"), (2, "open")]
    half = reader.must_open()
    reader.commit(half)
    reader.commit(half)
    assert [(b.batch_id, b.state) for b in group.batches()][1:] == [(2, "committed"), (3, "open")]


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(4)))
def test_readers_that_split_at_random_read_each_event_once_and_predecessors_first(
    lane: Lane, case: int
) -> None:
    random = random_for(case)
    other = Lane.made(lane.database, segments=3)
    group = Group.made(lane, other)
    read: dict[int, list[tuple[str, int]]] = {lane.stream_id: [], other.stream_id: []}
    readers: dict[str, Reader] = {}

    def step() -> bool:
        name = random.choice("ab")
        if name not in readers or random.random() < 0.2:
            readers[name] = group.reader(name)  # it was killed and is tried again
        batch = readers[name].open(random.choice([5, 1_000]))
        if batch is None:
            return False
        if batch.events > 1 and random.random() < 0.5:
            split(group, batch)
        elif random.random() < 0.7:
            for b in batch.bounds:
                read[b.stream_id] += [
                    (segment_name(b.segment_id), n) for n in range(b.start, b.end)
                ]
            readers[name].commit(batch)
        group.check_positions()
        return True

    for _ in range(12):
        for one in (lane, other):
            one.append({name: random.randrange(1, 6) for name in one.active()})
            active = one.active()
            one.scale(random.choice(active), parts=random.choice([1, 2]))
        step()
    idle = 0
    while idle < 20:
        idle = 0 if step() else idle + 1
    for one in (lane, other):
        found = read[one.stream_id]
        assert len(set(found)) == len(found) == sum(one.sizes().values())
        assert group.cut(one) == one.tail()
        for name, n in found:
            if n:
                assert found.index((name, n - 1)) < found.index((name, n))


def test_a_barrier_that_waits_for_a_batch_waits_for_all_its_parts(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    checkpoint(group.database, group.name, name="noon", barrier=True, request_id="noon")

    def noon() -> tuple[Any, Any]:
        [row] = group.rows("SELECT state, waits_for FROM checkpoint WHERE group_id = :g")
        return tuple(row)

    split(group, batch)
    assert noon() == ("waiting", [2])
    reader.commit(reader.must_open())
    assert noon() == ("waiting", [3])
    reader.commit(reader.must_open())
    assert noon() == ("complete", [3])


def test_a_part_pins_files_since_the_whole_was_opened(group: Group) -> None:
    reader = group.reader()
    split(group, reader.must_open())
    reader.commit(reader.must_open())
    assert len({b.opened_at for b in group.batches()}) == 1


def test_a_reset_abandons_a_batch_with_its_parts(lane: Lane, group: Group) -> None:
    reader = group.reader()
    split(group, reader.must_open())
    reset_reader_group(group.database, group.name, "tail", request_id="reset")
    assert [b.state for b in group.batches()] == ["split", "abandoned"]
    assert group.reader().open() is None
    assert group.cut() == lane.tail()
    assert group.rows("SELECT FROM held_segments(:g)") == []
