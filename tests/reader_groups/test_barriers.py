"""Barrier checkpoints: where the group will stand when what is open now is committed."""

from typing import Any

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, run, unique, while_held
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint
from weir.reader_groups.checkpoints.periodic import prune_checkpoints, settle_all
from weir.reader_groups.groups.update import update_reader_group


def barrier(group: Group, name: str, **options: Any) -> Any:
    return checkpoint(group.database, group.name, name=name, barrier=True, **options)


def state(group: Group, name: str) -> str:
    [row] = group.rows("SELECT state FROM checkpoint WHERE group_id = :g AND name = :n", n=name)
    return str(row.state)


def cut(group: Group, name: str) -> Any:
    [row] = group.rows("SELECT cuts FROM checkpoint WHERE group_id = :g AND name = :n", n=name)
    return row.cuts[str(group.lanes[0].stream_id)]


def test_a_barrier_waits_for_the_open_batches_and_names_them(group: Group) -> None:
    reader = group.reader("task")
    batch = reader.must_open(budget=10)
    made = barrier(group, "b")
    assert made["waits_for"] == ["batch 1 of reader task"]
    assert (state(group, "b"), cut(group, "b")) == ("waiting", {"0.0": 5, "1.0": 5})
    assert group.released() == group.cut() == {"0.0": 0, "1.0": 0}, "nothing moved yet"
    reader.commit(batch)
    assert state(group, "b") == "complete"
    assert group.released() == {"0.0": 5, "1.0": 5}


def test_a_later_checkpoint_is_not_taken_back_by_one_that_waited(group: Group) -> None:
    slow, fast = group.reader("slow"), group.reader("fast")
    held = slow.must_open(expected=2)
    barrier(group, "early")
    fast.read_all(expected=2)
    group.checkpoint("late")
    late = group.released()
    slow.commit(held)
    assert state(group, "early") == "complete"
    assert late is not None
    assert group.released() == {"0.0": 10, "1.0": 10}


def test_only_so_many_may_wait(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    for name in "123":
        barrier(group, name)
    with raises("limit_reached 3 cancel"):
        barrier(group, "4")
    cancel_checkpoint(group.database, group.name, "2", request_id="once")
    cancel_checkpoint(group.database, group.name, "2", request_id="once")
    barrier(group, "5")
    reader.commit(batch)
    assert [state(group, n) for n in "1235"] == ["complete", "cancelled", "complete", "complete"]
    with raises("checkpoint_not_waiting complete"):
        cancel_checkpoint(group.database, group.name, "1", request_id=unique("cancel"))
    with raises("checkpoint_not_found 'x'"):
        cancel_checkpoint(group.database, group.name, "x", request_id=unique("cancel"))
    update_reader_group(group.database, group.name, max_outstanding=1, request_id=unique("u"))
    with raises("argument_invalid max_outstanding 0"):
        update_reader_group(group.database, group.name, max_outstanding=0, request_id=unique("u"))


def test_what_is_over_makes_room_for_what_may_wait(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    for name in "123":
        barrier(group, name, patience=0.0)
    barrier(group, "4")
    assert [state(group, name) for name in "1234"] == [*["timed out"] * 3, "waiting"]
    reader.commit(batch)
    assert state(group, "4") == "complete"


def test_what_was_given_up_is_forgotten_and_what_has_a_name_is_not(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    for name in ("late", "cancelled", "waiting"):
        barrier(group, name, patience=0.0 if name == "late" else 60.0)
    settle_all(group.database)
    cancel_checkpoint(group.database, group.name, "cancelled", request_id=unique("cancel"))
    group.checkpoint("named")
    prune_checkpoints(group.database, 0.0)
    names = "SELECT name FROM checkpoint WHERE group_id = :g ORDER BY name"
    assert [row.name for row in group.rows(names)] == ["named", "waiting"]
    reader.commit(batch)
    group.checkpoint()
    prune_checkpoints(group.database, 0.0)
    assert [row.name for row in group.rows(names)][1:] == ["named", "waiting"]


def test_what_was_published_is_said(lane: Lane) -> None:
    lane.append({"0.0": 5})
    for subscriber in (True, False):
        group = Group.made(lane, subscriber=subscriber)
        reader = group.reader()
        batch = reader.must_open()
        barrier(group, "b")
        reader.commit(batch)
        # As if its commit had not seen the barrier, asked for at the same moment.
        run(
            group.database,
            """UPDATE checkpoint SET state = 'waiting', released = false, ended_at = NULL,
                expires_at = created_at + interval '1 hour' WHERE group_id = :g""",
            g=group.group_id,
        )
        done, failed = settle_all(group.database)
        assert {"reader_group": group.name, "checkpoint": "b", "released": subscriber} in done
        assert failed == []


def test_a_group_that_is_deleted_meanwhile_stops_no_other(lane: Lane) -> None:
    lane.append({"0.0": 5})
    gone, other = sorted([Group.made(lane), Group.made(lane)], key=lambda group: group.name)
    for group in (gone, other):
        group.reader().must_open()
        barrier(group, "b", patience=0.0)
    _, (_, failed) = while_held(lane.database, gone.delete_in, lambda: settle_all(lane.database))
    assert failed == []
    assert state(other, "b") == "timed out"
