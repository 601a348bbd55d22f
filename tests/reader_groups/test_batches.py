"""Batches: what a reader is given to read, and how positions move when it is committed."""

import pytest

from tests.world.groups import Group, spans
from tests.world.streams import Lane


def test_a_batch_has_everything_up_to_the_tail(lane: Lane, group: Group) -> None:
    batch = group.reader().must_open()
    assert spans(batch) == [("0.0", 0, 10), ("1.0", 0, 10)]
    assert (batch.events, batch.batch_id, batch.attempt) == (20, 1, 1)
    assert [(b.state, b.events, b.bytes) for b in group.batches()] == [("open", 20, 200)]


def test_opening_again_before_the_commit_gives_the_same_batch_as_another_attempt(
    group: Group,
) -> None:
    reader = group.reader()
    first = reader.must_open(budget=10)
    again = reader.must_open(budget=1_000)
    assert (again.batch_id, again.bounds) == (first.batch_id, first.bounds)
    assert (again.attempt, again.token) == (2, first.token)
    reader.commit(again)


def test_committing_twice_is_harmless_also_when_the_next_batch_is_open(
    lane: Lane, group: Group
) -> None:
    reader = group.reader()
    batch = reader.must_open(budget=10)
    reader.commit(batch)
    following = reader.must_open()
    before = group.states()
    reader.commit(batch)
    assert group.states() == before
    reader.commit(following)
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_segments_of_an_open_batch_do_not_move_to_a_reader_that_joins(group: Group) -> None:
    a = group.reader("a")
    batch = a.must_open(budget=10)
    b = group.reader("b")
    assert b.open() is None
    a.commit(batch)
    # Between batches the first gives one up, and the second takes it.
    following = a.must_open(budget=10)
    assert len(spans(following)) == 1
    [taken] = b.read_all()
    assert taken[1:] == (5, 10)
    a.commit(following)
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_ends_of_empty_segments_are_passed_without_a_batch(lane: Lane) -> None:
    group = Group.made(lane)
    low, high = lane.scale("0.0")
    assert group.reader().open() is None
    assert group.cut() == {low: 0, high: 0, "1.0": 0}
    assert group.batches() == []


@pytest.mark.parametrize("most", [1, 3])
def test_what_lies_beyond_the_part_of_the_graph_that_one_batch_looks_at_is_not_lost(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("weir.reader_groups.positions.MOST_SEGMENTS_AHEAD", most)
    group = Group.made(lane)
    lane.append({"0.0": 1, "1.0": 1})
    names = ["1.0"]
    for _ in range(6):  # 0.0 is left behind while the other half is scaled again and again
        names = lane.scale(*names, parts=3 - len(names))
        lane.append(dict.fromkeys(names, 1))
    lane.append({"0.0": 1})
    [low] = lane.scale("0.0", parts=1)
    lane.append({low: 1})
    a, b = group.reader("a"), group.reader("b")
    read: list[tuple[str, int, int]] = []
    for _ in range(20):
        for reader in (a, b):
            if (batch := reader.open()) is not None:
                read += spans(batch)
                reader.commit(batch)
            group.check_positions()
    assert sum(end - start for _, start, end in read) == sum(lane.sizes().values())
    assert group.cut() == lane.tail()


def test_streams_of_a_group_are_kept_apart(lane: Lane) -> None:
    # Both streams have segments of the same ids; only one merges its own.
    other = Lane.made(lane.database)
    for one in (lane, other):
        one.append({"0.0": 1, "1.0": 1})
    group = Group.made(lane, other)
    reader = group.reader()
    reader.read_all()
    [merged] = lane.scale("0.0", "1.0", parts=1)
    assert reader.open() is None
    assert (group.cut(lane), group.cut(other)) == ({merged: 0}, {"0.0": 1, "1.0": 1})
    lane.append({merged: 2})
    assert reader.read_all() == [(merged, 0, 2)]
    group.check_positions()
