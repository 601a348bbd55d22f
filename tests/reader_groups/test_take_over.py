"""A reader that dies or lags: its batch is taken over whole, and whoever comes late is refused."""

from functools import partial

from tests.world.groups import Group
from tests.world.streams import Lane, at_once
from weir.errors import Fenced


def test_an_expired_reader_is_spared_for_a_lease_after_the_start_of_the_server(
    group: Group,
) -> None:
    late, other = group.reader("late"), group.reader("other")
    batch = late.must_open()
    group.lapse("late")
    assert other.must_open(lease=3600.0).batch_id == 2
    late.commit(batch)


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
