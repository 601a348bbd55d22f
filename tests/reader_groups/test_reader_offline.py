"""A reader that is taken out by hand, with its batch or at a position in it."""

import json

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.errors import Fenced
from weir.reader_groups.groups.readers import reader_offline


def offline(group: Group, reader: str, position: str = "") -> None:
    reader_offline(group.database, group.name, reader, position, request_id=unique("offline"))


def test_a_reader_offline_without_a_position_leaves_its_batch_to_others(group: Group) -> None:
    gone, other = group.reader("gone"), group.reader("other")
    batch = gone.must_open()
    offline(group, "gone")
    taken = other.must_open(lease=60.0)
    assert (taken.batch_id, taken.bounds, taken.attempt) == (batch.batch_id, batch.bounds, 2)
    with pytest.raises(Fenced):
        gone.commit(batch)


def test_a_position_in_several_streams_names_them(group: Group, lane: Lane) -> None:
    other = Lane.made(lane.database)
    other.append({"0.0": 5})
    group.update(streams=[lane.name, other.name])
    group.reader("gone").must_open()
    with raises("position_invalid test/stream test"):
        offline(group, "gone", "0.0=3")
    offline(group, "gone", json.dumps({str(other.name): {"0.0": 3}}))
    assert group.cut(lane) == {"0.0": 0, "1.0": 0}
    assert group.cut(other) == {"0.0": 3, "1.0": 0}


def test_a_position_behind_something_unread_is_refused(group: Group, lane: Lane) -> None:
    lane.scale("0.0", parts=2)
    lane.append({"2.1": 5, "3.1": 5})
    reader = group.reader("gone")
    batch = reader.must_open()
    with raises("position_invalid 2.1 0.0 show"):
        offline(group, "gone", "2.1=3")
    reader.commit(batch)
    lane.append({"2.1": 5})
    lane.scale("2.1", parts=2)
    lane.append({"4.2": 5})
    reader.must_open()
    offline(group, "gone", "2.1=10, 4.2=2")
    assert group.cut() == {"1.0": 10, "3.1": 5, "4.2": 2, "5.2": 0}


@pytest.mark.parametrize("position", ["0.0=11", "7.7=0", "0.0=future"])
def test_a_position_outside_the_batch_is_refused(group: Group, position: str) -> None:
    reader = group.reader("task")
    batch = reader.must_open()
    with raises("position_invalid between"):
        offline(group, "task", position)
    reader.commit(batch)
    with raises("position_invalid open"):
        offline(group, "task", "0.0=10")
    with raises("reader_not_found 'nobody'"):
        offline(group, "nobody")
