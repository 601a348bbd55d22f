"""Subscribers: protected from their creation, released by checkpoints or by hand, timed out."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.retention import consume, decide
from tests.world.streams import Lane, run, unique
from weir.database.connection import Database
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.checkpoints.periodic import checkpoint_all, settle_all
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.release import release
from weir.retention.run import retain


def let_go(group: Group, at: str, **options: Any) -> Mapping[str, Any]:
    options.setdefault("request_id", unique("release"))
    return release(group.database, group.name, at, **options)


def manual(lane: Lane, **options: Any) -> Group:
    return Group.made(lane, release="manual", **options)


def test_a_release_is_done_once_and_can_not_be_taken_back(lane: Lane) -> None:
    group = manual(lane)
    lane.append({"0.0": 5, "1.0": 5})
    done = let_go(group, "0.0=3, 1.0=1", request_id="once")
    assert let_go(group, "0.0=3, 1.0=1", request_id="once") == done
    with raises("request_reused"):
        let_go(group, "0.0=4, 1.0=1", request_id="once")
    with raises("position_invalid 0.0 after"):
        let_go(group, "0.0=2, 1.0=5")
    with raises("cut_invalid 9"):
        let_go(group, "0.0=9, 1.0=5")
    assert group.released() == {"0.0": 3, "1.0": 1}


def test_only_a_subscriber_that_releases_by_hand_can(lane: Lane) -> None:
    with raises("release_not_manual"):
        let_go(Group.made(lane), "tail")
    with raises("release_not_manual subscriber"):
        let_go(manual(lane, subscriber=False), "tail")
    group = manual(lane)
    with raises("group_changed 0 1"):
        let_go(group, "tail", generation=1)
    with raises("group_not_found"):
        release(lane.database, "nobody", "tail", request_id=unique("release"))


def test_after_a_reset_a_group_that_releases_by_hand_needs_what_it_will_read_again(
    lane: Lane,
) -> None:
    group = manual(lane)
    lane.append({"0.0": 5, "1.0": 5})
    group.reader().read_all()
    let_go(group, "0.0=4, 1.0=1")
    reset: dict[str, Any] = {"allow_repeat": True, "request_id": unique("reset")}
    reset_reader_group(lane.database, group.name, "0.0=2, 1.0=3", **reset)
    assert group.released() == {"0.0": 2, "1.0": 1}
    reset_reader_group(lane.database, group.name, "tail", request_id=unique("reset"))
    assert group.released() == {"0.0": 2, "1.0": 1}, "a position releases nothing by itself"


def test_who_is_deleted_or_leaves_a_stream_or_is_no_subscriber_any_more_holds_nothing(
    lane: Lane,
) -> None:
    other = Lane.made(lane.database, retention="consumed")
    fast, gone = Group.made(lane), Group.made(lane)
    left, none = Group.made(lane, other), Group.made(lane)
    lane.append({"0.0": 5})
    consume(fast)
    assert decide(lane)["held_by"] == sorted([gone.name, left.name, none.name])
    delete_reader_group(lane.database, gone.name, request_id=unique("delete"))
    update_reader_group(
        lane.database, left.name, streams=[other.name], request_id=unique("update")
    )  # fmt: skip
    update_reader_group(
        lane.database, none.name, subscriber=False, allow_loss=True, request_id=unique("update")
    )
    assert decide(lane)["cut"] == {"0.0": 5, "1.0": 0}


def test_what_was_read_is_released_when_the_group_becomes_automatic_though_it_moves_no_more(
    alone: Lane,
) -> None:
    group = manual(alone)
    alone.append({"0.0": 5})
    group.reader().read_all()
    checkpoint_all(alone.database)
    update_reader_group(
        alone.database, group.name, release="automatic", request_id=unique("update")
    )
    made, _ = checkpoint_all(alone.database)
    assert [one["released"] for one in made] == [True]
    assert decide(alone)["cut"] == {"0.0": 5, "1.0": 0}
    assert checkpoint_all(alone.database) == ([], [])


def test_a_checkpoint_that_waits_releases_nothing_after_a_reset(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 5})
    reader = group.reader()
    batch = reader.must_open()
    checkpoint(lane.database, group.name, name="noon", barrier=True, request_id=unique("noon"))
    # As if the commit had not seen that somebody waits, and nobody had looked since.
    run(
        lane.database,
        """UPDATE checkpoint SET state = 'complete', expires_at = NULL, ended_at = created_at
        WHERE group_id = :g""",
        g=group.group_id,
    )
    reader.commit(batch)
    run(
        lane.database,
        """UPDATE checkpoint SET state = 'waiting', expires_at = created_at + interval '1 hour',
            ended_at = NULL WHERE group_id = :g""",
        g=group.group_id,
    )
    reset_reader_group(
        lane.database, group.name, "start", allow_repeat=True, request_id=unique("reset")
    )
    assert settle_all(lane.database) == ([], [])
    assert group.released() == {"0.0": 0, "1.0": 0}
    [[state]] = group.rows("SELECT state FROM checkpoint WHERE group_id = :g")
    assert state == "cancelled"


def test_a_checkpoint_asks_for_a_decision_only_where_it_releases_something(alone: Lane) -> None:
    idle = Lane.made(alone.database, retention="consumed")
    group = Group.made(alone, idle)
    while retain(alone.database):
        pass
    for _ in range(3):
        alone.append({"0.0": 1})
        consume(group)
        assert [report["stream"] for report in retain(alone.database)] == [str(alone.name)]
        while retain(alone.database):
            pass


# Groups that stop for good.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"release": "sometimes"}, "argument_invalid release 'sometimes'"),
        ({"time_out": 0}, "argument_invalid 0 s"),
    ],
)
def test_what_a_subscriber_can_not_be_is_refused(
    lane: Lane, options: dict[str, Any], said: str
) -> None:
    with raises(said):
        Group.made(lane, **options)


@pytest.mark.parametrize("before", ["", "retention", "more retention"])
def test_a_decision_names_the_subscribers_whose_deletion_released_events(
    database: Database, before: str
) -> None:
    lane = Lane.made(database, segments=1, retention="consumed")
    lane.append({"0.0": 4})
    reads, never, other = Group.made(lane), Group.made(lane), Group.made(lane, subscriber=False)
    reads.reader().read_all()
    reads.checkpoint("all")
    for _ in before.split():
        assert "deleted" not in retain(database, [lane.name])[0]["reason"]
    for group in (other, never):
        delete_reader_group(database, group.name, request_id=unique("delete"))
    [done] = retain(database, [lane.name])
    assert done["reason"] == (
        f"all subscribers ({never.name} was deleted) are past it; held by {reads.name}"
    )
    receipt = lane.value("SELECT reason FROM truncation WHERE stream_id = :s")
    assert receipt == done["reason"]
    lane.append({"0.0": 4})
    reads.reader().read_all()
    reads.checkpoint("more")
    assert "deleted" not in retain(database, [lane.name])[0]["reason"]
