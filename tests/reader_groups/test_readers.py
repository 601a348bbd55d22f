"""The life of a reader: join, renew, lapse, leave."""

import pytest

from tests.world.groups import Group
from tests.world.streams import Lane, rows, while_held
from weir.errors import Fenced
from weir.reader_groups.groups.readers import expire, renew_alone


@pytest.fixture
def group(lane: Lane) -> Group:
    lane.append({"0.0": [2, 3], "1.0": [2, 3]})
    return Group.made(lane)


def expired(group: Group, lease: float = 0.0) -> list[str]:
    found = expire(group.database, lease)
    return [one["reader"] for one in found if one["reader_group"] == group.name]


def test_a_reader_without_progress_keeps_its_lease_while_nobody_waits(group: Group) -> None:
    one = group.reader("one")

    def kept() -> bool:
        group.lapse("one")
        group.database.transaction(lambda c: renew_alone(c, group.name, "one", one.token, 60.0))
        [[alive]] = group.rows(
            """SELECT lease_until > clock_timestamp() FROM reader
            WHERE group_id = :g AND reader_id = 'one'"""
        )
        return bool(alive)

    assert kept()
    two = group.reader("two")
    assert not kept()
    two.leave()
    assert kept()
    group.reader("one")
    assert not kept(), "another process has its name"


def test_expiry_frees_what_an_expired_reader_owns(group: Group) -> None:
    a = group.reader("a")
    a.commit(a.must_open(budget=4))
    assert group.states() == {"0.0": ("assigned", 2, "a"), "1.0": ("assigned", 2, "a")}
    assert expired(group) == []
    group.lapse("a")
    assert expired(group) == ["a"]
    assert group.states() == {"0.0": ("unassigned", 2, None), "1.0": ("unassigned", 2, None)}
    with pytest.raises(Fenced):
        a.renew()
    with pytest.raises(Fenced):
        a.open()


def test_expiry_leaves_a_reader_with_an_open_batch_to_whoever_takes_it_over(group: Group) -> None:
    a = group.reader("a")
    batch = a.must_open(budget=4)
    group.lapse("a")
    assert expired(group) == []
    assert group.readers() == ["a"]
    a.commit(batch)


def test_expiry_spares_what_expired_less_than_a_lease_after_the_server_started(
    group: Group,
) -> None:
    a = group.reader("a")
    group.lapse("a")
    [[age]] = rows(
        group.database,
        "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float",
    )
    assert expired(group, lease=age + 60.0) == []
    b = group.reader("b")
    b.open(lease=age + 60.0)
    a.renew()
    group.lapse("a")
    assert expired(group, lease=age) == ["a"]


def test_expiry_goes_on_when_a_group_is_deleted_meanwhile(lane: Lane) -> None:
    gone, other = Group.made(lane), Group.made(lane)
    for group in (gone, other):
        group.reader("a")
        group.lapse("a")
    _, freed = while_held(lane.database, gone.delete_in, lambda: expired(other))
    assert freed == ["a"]


def test_leaving_with_an_open_batch_lets_another_have_it_at_once(group: Group) -> None:
    a, b = group.reader("a"), group.reader("b")
    batch = a.must_open(expected=1)
    a.leave()
    resumed = b.must_open(lease=3600.0)
    assert (resumed.batch_id, resumed.bounds) == (batch.batch_id, batch.bounds)


def test_leaving_under_an_old_token_does_nothing(group: Group) -> None:
    before = group.reader("a")
    now = group.reader("a")
    before.leave()
    assert group.readers() == ["a"]
    now.renew()


def test_leaving_does_not_end_readers_that_are_only_late(group: Group) -> None:
    # Whose lease expired while Postgres was away is spared for a while after its start.
    a, b = group.reader("a"), group.reader("b")
    group.lapse("a")
    b.leave()
    assert group.readers() == ["a"]
    a.renew()
