"""A group that is changed: its settings, its generation, its streams."""

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.reader_groups.checkpoints.lifecycle import checkpoint


def test_each_change_makes_a_generation_and_an_old_one_is_refused(group: Group) -> None:
    assert group.update(on_gap="skip")["generation"] == 1
    assert group.update(generation=1, max_outstanding=5)["generation"] == 2
    with raises("group_changed 2 1"):
        group.update(generation=1, on_gap="fail")
    with raises("argument_invalid on_gap 'ignore'"):
        group.update(on_gap="ignore")
    [row] = group.rows("SELECT on_gap, max_outstanding FROM reader_group WHERE group_id = :g")
    assert tuple(row) == ("skip", 5)


def test_a_group_that_becomes_a_subscriber_is_protected_from_where_it_stands(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane, subscriber=False)
    reader = group.reader()
    reader.commit(reader.must_open())
    group.update(subscriber=True)
    assert group.released() == {"0.0": 5, "1.0": 0}
    group.update(subscriber=False)
    assert group.released() is None


def test_streams_come_and_go(group: Group) -> None:
    other = Lane.made(group.database)
    other.append({"0.0": 4})
    group.update(streams=[group.lanes[0].name, other.name])
    assert group.cut(other) == {"0.0": 0, "1.0": 0}
    batch = group.reader().must_open()
    with raises("batch_open"):
        group.update(streams=[other.name])
    group.reader().commit(batch)
    group.update(streams=[other.name])
    assert group.states(group.lanes[0]) == {}
    with raises("group_unsuitable read"):
        group.update(streams=[])


def test_a_checkpoint_that_waited_releases_nothing_of_a_stream_that_was_left_meanwhile(
    group: Group, lane: Lane
) -> None:
    other = Lane.made(lane.database)
    other.append({"0.0": 5})
    group.update(streams=[lane.name, other.name])
    reader = group.reader()
    reader.read_all()
    lane.append({"0.0": 5})
    batch = reader.must_open()
    checkpoint(group.database, group.name, name="waits", barrier=True)
    group.update(streams=[lane.name])
    group.update(streams=[lane.name, other.name], start="head")
    reader.commit(batch)
    assert group.released(lane) == {"0.0": 15, "1.0": 10}
    assert group.released(other) == group.cut(other) == {"0.0": 0, "1.0": 0}
