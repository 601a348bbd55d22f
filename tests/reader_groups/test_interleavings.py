"""Two sessions at one group at the same time: one after the other, or refused; never stuck."""

import time
from functools import partial

import pytest
from sqlalchemy import Connection

from tests.controller.support import Lane, at_once, staged, while_held
from tests.reader_groups.support import LEASE, Group
from weir.controller.locks import lock_group
from weir.controller.transactions import ping
from weir.reader_groups.readers import release_lapsed, renew
from weir.retention.run import retain


def test_renewing_leases_while_a_batch_is_committed_is_no_deadlock(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    # The thread that renews: the reader first, then the transactions of its output.
    lane.append({"0.0": 5})
    group, out = Group.made(lane), Lane.made(lane.database)
    reader = group.reader()
    batch = reader.must_open()
    attempt = out.opened()

    def renewing(connection: Connection) -> None:
        renew(connection, group.name, reader.reader_id, reader.token, LEASE)

    def holding(connection: Connection) -> None:
        renewing(connection)
        # The commit is under way and waits for the reader's row.
        time.sleep(0.5)
        ping(connection, attempt, LEASE, 3600.0)

    outcomes = at_once(
        partial(lane.database.transaction, holding),
        lambda: (time.sleep(0.2), reader.commit(batch, [staged(attempt, {"0.0": 5})]))[1],
    )
    assert outcomes[0] is None
    assert [one.events for one in outcomes[1]] == [5]
    assert out.tail() == {"0.0": 5, "1.0": 0}
    assert "deadlock" not in caplog.text


def test_readers_that_open_at_once_share_without_overlap(lane: Lane) -> None:
    wide = Lane.made(lane.database, segments=8)
    wide.append({f"{i}.0": 3 for i in range(8)})
    group = Group.made(wide)
    readers = [group.reader(f"r{i}") for i in range(4)]
    batches = at_once(*[reader.open for reader in readers])
    read = [bound.segment_id for batch in batches for bound in batch.bounds]
    assert sorted(read) == list(range(8))
    for result in at_once(*[partial(r.commit, b) for r, b in zip(readers, batches, strict=True)]):
        assert result == []
    assert group.cut() == wide.tail()


def test_a_merged_segment_is_entered_once_when_its_predecessors_end_at_the_same_time(
    lane: Lane,
) -> None:
    for _ in range(6):
        one = Lane.made(lane.database)
        one.append({"0.0": 5, "1.0": 5})
        group = Group.made(one)
        [merged] = one.scale("0.0", "1.0", parts=1)
        one.append({merged: 2})
        a, b = group.reader("a"), group.reader("b")
        first, second = a.must_open(), b.must_open()
        at_once(partial(a.commit, first), partial(b.commit, second))
        assert group.states() == {merged: ("unassigned", 0, None)}


def test_a_commit_that_waits_for_a_take_over_is_refused(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane)
    a, b = group.reader("a"), group.reader("b")
    batch = a.must_open()

    def releasing(connection: Connection) -> list[str]:
        locked = lock_group(connection, group.name)
        return release_lapsed(connection, locked, lease=0.0)

    # With its batch open a lapsed reader stays ...
    group.lapse("a")
    released, committed = while_held(lane.database, releasing, partial(a.commit, batch))
    assert (released, committed) == ([], [])
    # ... without one it goes, and what it asks for then is refused.
    group.lapse("a")
    released, opened = while_held(lane.database, releasing, a.open)
    assert released == ["a"]
    assert "was replaced" in str(opened)
    assert b.open() is None


def test_a_group_created_while_the_stream_is_truncated_begins_at_the_new_head(
    lane: Lane,
) -> None:
    for _ in range(6):
        one = Lane.made(lane.database)
        one.append({"0.0": 5, "1.0": 5})
        group, _ = at_once(partial(Group.made, one), partial(one.truncate, "0.0=2, 1.0=3"))
        assert group.cut() in ({"0.0": 0, "1.0": 0}, {"0.0": 2, "1.0": 3})
        assert group.cut() == group.published()


def test_retention_and_a_subscriber_that_is_created_leave_it_all_its_events(lane: Lane) -> None:
    for _ in range(6):
        one = Lane.made(lane.database)
        one.append({"0.0": 5, "1.0": 5})
        first = Group.made(one)
        first.reader().read_all()
        first.checkpoint()
        second, _ = at_once(partial(Group.made, one), partial(retain, lane.database))
        # Whichever was first: what the new one is to read is still there.
        retain(lane.database)
        head, start = one.head(), second.cut()
        assert all(head[name] <= start[name] for name in head)


def test_checkpoints_and_retention_at_once_never_pass_the_slower_subscriber(lane: Lane) -> None:
    one = Lane.made(lane.database)
    fast, slow = Group.made(one), Group.made(one)
    for _ in range(6):
        one.append({"0.0": 5, "1.0": 5})
        fast.reader().read_all()
        reader = slow.reader()
        reader.commit(reader.must_open(budget=1))
        outcomes = at_once(
            fast.checkpoint, slow.checkpoint, partial(retain, lane.database), fast.checkpoint
        )
        assert not [o for o in outcomes if isinstance(o, Exception)]
        head, stands = one.head(), slow.cut()
        assert all(head[name] <= stands[name] for name in head)
