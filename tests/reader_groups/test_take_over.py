"""A reader that dies or lags: its batch is taken over whole, and whoever comes late is refused."""

from functools import partial

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, at_once, staged
from weir.errors import Fenced
from weir.reader_groups.batch import check_held


def test_the_batch_of_a_dead_reader_is_taken_over_whole_with_its_bounds(
    lane: Lane, group: Group
) -> None:
    dead = group.reader("dead")
    batch = dead.must_open(budget=10)
    lane.append({"0.0": 100})  # what comes later is not part of it
    lane.scale("1.0")
    alive = group.reader("alive")
    group.lapse("dead")
    taken = alive.must_open(budget=1_000)
    assert (taken.batch_id, taken.bounds, taken.events) == (
        batch.batch_id, batch.bounds, batch.events,
    )  # fmt: skip
    assert (taken.attempt, taken.reader_id, taken.token) == (2, "alive", alive.token)
    assert set(group.owned("alive")) == {"0.0", "1.0"}
    alive.commit(taken)
    assert group.cut() == {"0.0": 5, "1.0": 5}


def test_a_zombie_can_neither_commit_nor_go_on_with_its_batch(lane: Lane, group: Group) -> None:
    dead = group.reader("dead")
    batch = dead.must_open()
    alive = group.reader("alive")
    group.lapse("dead")
    taken = alive.must_open()
    with raises("batch_taken_over 'dead'"):
        dead.commit(batch)
    with pytest.raises(Fenced):
        lane.database.transaction(lambda c: check_held(c, batch))
    assert group.cut() == {"0.0": 0, "1.0": 0}
    alive.commit(taken)
    with pytest.raises(Fenced):
        dead.commit(batch)
    assert group.cut() == {"0.0": 10, "1.0": 10}
    assert [b.state for b in group.batches()] == ["committed"]


def test_a_zombies_output_stays_invisible_and_that_of_the_other_counts(
    lane: Lane, group: Group
) -> None:
    out = Lane.made(lane.database)
    dead, alive = group.reader("dead"), group.reader("alive")
    batch = dead.must_open()
    written = staged(out.opened("1", writer=f"group {group.name}"), {"0.0": 7})
    group.lapse("dead")
    taken = alive.must_open()
    again = staged(out.opened("1", writer=f"group {group.name}"), {"0.0": 8})
    with pytest.raises(Fenced):
        dead.commit(batch, [written])
    assert out.tail() == {"0.0": 0, "1.0": 0}
    alive.commit(taken, [again])
    assert out.tail() == {"0.0": 8, "1.0": 0}


def test_a_reader_prefers_its_own_open_batch_to_that_of_a_dead_one(group: Group) -> None:
    dead, mine = group.reader("dead"), group.reader("mine")
    dead.must_open()
    own = mine.must_open()
    group.lapse("dead")
    back = group.reader("mine")
    assert back.must_open().batch_id == own.batch_id
    # After its own it takes the dead one's.
    back.commit(back.must_open())
    assert back.must_open().batch_id == 1


def test_an_expired_reader_is_spared_for_a_lease_after_the_start_of_the_server(
    group: Group,
) -> None:
    late, other = group.reader("late"), group.reader("other")
    batch = late.must_open()
    group.lapse("late")
    assert other.must_open(lease=3600.0).batch_id == 2
    late.commit(batch)


def test_of_several_that_take_over_at_once_one_gets_the_batch(group: Group) -> None:
    dead = group.reader("dead")
    batch = dead.must_open()
    readers = [group.reader(f"r{i}") for i in range(4)]
    group.lapse("dead")
    opened = at_once(*[reader.open for reader in readers])
    [taken] = [one for one in opened if one is not None]
    assert (taken.batch_id, taken.bounds) == (batch.batch_id, batch.bounds)
    [winner] = [r for r in readers if r.reader_id == taken.reader_id]
    winner.commit(taken)
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_take_over_and_commit_at_once_end_in_one_of_the_two_orders(lane: Lane) -> None:
    for _ in range(8):
        lane.append({"0.0": 3})
        group = Group.made(lane)
        a, b = group.reader("a"), group.reader("b")
        batch = a.must_open()
        group.lapse("a")
        committed, opened = at_once(partial(a.commit, batch), b.open)
        if isinstance(committed, Fenced):  # b was first, and has the batch
            assert opened.batch_id == batch.batch_id
            b.commit(opened)
        else:  # a was first, and nothing is left
            assert committed == []
            assert opened is None
        assert group.cut() == lane.tail()
        assert [x.state for x in group.batches()] == ["committed"]
