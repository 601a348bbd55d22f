"""Subscribers: protected from their creation, released by checkpoints or by hand, timed out."""

import logging
from typing import Any

import pytest

from tests.controller.support import Lane, rows, run, unique
from tests.reader_groups.support import Group
from weir.controller.update import update_stream
from weir.errors import Conflict, InvalidInput, NotFound, Truncated
from weir.reader_groups.changes import (
    delete_reader_group,
    reset_reader_group,
    update_reader_group,
)
from weir.reader_groups.checkpoints import checkpoint_all
from weir.reader_groups.readers import expire
from weir.retention.capture import capture
from weir.retention.run import retain
from weir.retention.subscribers import release
from weir.storage import Database

DAY = 86400


def let_go(group: Group, at: str, **options: Any) -> dict[str, Any]:
    options.setdefault("request_id", unique("release"))
    return release(group.database, group.name, at, **options)


def decide(lane: Lane) -> dict[str, Any]:
    [report] = retain(lane.database, [lane.name])
    return report


def manual(lane: Lane, **options: Any) -> Group:
    return Group.made(lane, release="manual", **options)


def test_by_hand_only_what_is_released_goes(lane: Lane) -> None:
    group = manual(lane)
    lane.append({"0.0": 5, "1.0": 5})
    group.reader().read_all()
    assert group.checkpoint("noon")["published"] is False
    assert decide(lane)["rule"] == "nothing_consumed"
    let_go(group, "0.0=2, 1.0=1")
    assert decide(lane)["cut"] == {"0.0": 2, "1.0": 1}
    let_go(group, "checkpoint noon")
    assert decide(lane)["cut"] == {"0.0": 5, "1.0": 5}
    lane.append({"0.0": 1})
    let_go(group, "position")
    assert group.published() == {"0.0": 5, "1.0": 5}


def test_a_release_is_done_once_and_can_not_be_taken_back(lane: Lane) -> None:
    group = manual(lane)
    lane.append({"0.0": 5, "1.0": 5})
    done = let_go(group, "0.0=3, 1.0=1", request_id="once")
    assert let_go(group, "0.0=3, 1.0=1", request_id="once") == done
    with pytest.raises(Conflict, match="with other arguments"):
        let_go(group, "0.0=4, 1.0=1", request_id="once")
    with pytest.raises(InvalidInput, match=r"released more than that in segment 0\.0"):
        let_go(group, "0.0=2, 1.0=5")
    with pytest.raises(InvalidInput, match="offset 9 does not exist"):
        let_go(group, "0.0=9, 1.0=5")
    assert group.published() == {"0.0": 3, "1.0": 1}


def test_only_a_subscriber_that_releases_by_hand_can(lane: Lane) -> None:
    with pytest.raises(Conflict, match="releases at its checkpoints"):
        let_go(Group.made(lane), "tail")
    with pytest.raises(Conflict, match="is no subscriber"):
        let_go(manual(lane, subscriber=False), "tail")
    group = manual(lane)
    with pytest.raises(Conflict, match="of generation 0, not 1"):
        let_go(group, "tail", generation=1)
    with pytest.raises(NotFound, match="no reader group"):
        release(lane.database, "nobody", "tail", request_id=unique("release"))


def test_after_a_reset_a_group_that_releases_by_hand_needs_what_it_will_read_again(
    lane: Lane,
) -> None:
    group = manual(lane)
    lane.append({"0.0": 5, "1.0": 5})
    group.reader().read_all()
    let_go(group, "0.0=4, 1.0=1")
    reset = {"allow_repeat": True, "request_id": unique("reset")}
    reset_reader_group(lane.database, group.name, "0.0=2, 1.0=3", **reset)
    assert group.published() == {"0.0": 2, "1.0": 1}
    reset_reader_group(lane.database, group.name, "tail", request_id=unique("reset"))
    assert group.published() == {"0.0": 2, "1.0": 1}, "a position releases nothing by itself"


def test_a_group_that_becomes_automatic_releases_at_its_next_checkpoint(lane: Lane) -> None:
    group = manual(lane)
    lane.append({"0.0": 5})
    group.reader().read_all()
    done = update_reader_group(
        lane.database, group.name, release="automatic", request_id=unique("update")
    )
    assert done["generation"] == 1
    group.checkpoint()
    assert group.published() == {"0.0": 5, "1.0": 0}


def test_who_is_deleted_or_leaves_a_stream_or_is_no_subscriber_any_more_holds_nothing(
    lane: Lane,
) -> None:
    other = Lane.made(lane.database)
    fast, gone = Group.made(lane), Group.made(lane)
    left, none = Group.made(lane, other), Group.made(lane)
    lane.append({"0.0": 5})
    fast.reader().read_all()
    fast.checkpoint()
    assert decide(lane)["held_by"] == sorted([gone.name, left.name, none.name])
    delete_reader_group(lane.database, gone.name, request_id=unique("delete"))
    update_reader_group(
        lane.database, left.name, streams=[other.name], request_id=unique("update")
    )  # fmt: skip
    update_reader_group(lane.database, none.name, subscriber=False, request_id=unique("update"))
    assert decide(lane)["cut"] == {"0.0": 5, "1.0": 0}


def test_what_is_released_unread_is_lost_to_the_group_and_recorded(lane: Lane) -> None:
    group = manual(lane)
    lane.append({"0.0": [5, 5]})
    let_go(group, "0.0=7, 1.0=0")
    report = decide(lane)
    assert (report["rule"], report["cut"]) == ("consumed", {"0.0": 7, "1.0": 0})
    assert report["lost"] == {group.name: 7}
    [row] = lane.rows("SELECT lost FROM retention_decision WHERE stream_id = :s")
    assert row.lost == {group.name: 7}


# Groups that stop for good.


def bounded(lane: Lane, **options: Any) -> Group:
    """One that stops after the first five events of the stream, which are there."""
    lane.append({"0.0": 5})
    return Group.made(lane, end="0.0=5, 1.0=0", **options)


def test_who_has_released_all_up_to_its_end_leaves_the_rest_to_the_others(lane: Lane) -> None:
    group = bounded(lane)
    other = Group.made(lane)
    lane.append({"0.0": 5})
    for one in (group, other):
        one.reader().read_all()
    other.checkpoint()
    assert decide(lane)["held_by"] == [group.name]
    group.checkpoint()
    report = decide(lane)
    assert (report["cut"], report["held_by"]) == ({"0.0": 10, "1.0": 0}, [other.name])


def test_who_has_released_all_up_to_its_end_still_releases_that_when_it_is_the_only_one(
    lane: Lane,
) -> None:
    group = bounded(lane)
    lane.append({"0.0": 5})
    group.reader().read_all()
    group.checkpoint()
    assert decide(lane)["cut"] == {"0.0": 5, "1.0": 0}
    assert decide(lane)["rule"] == "nothing_consumed"


def test_who_has_read_up_to_its_end_does_not_time_out_and_loses_nothing(lane: Lane) -> None:
    group = bounded(lane, release="manual", time_out=DAY)
    lane.append({"0.0": 5})
    group.reader().read_all()
    pass_time(lane, 2 * DAY)
    report = decide(lane)
    assert (report["left_out"], report["held_by"]) == ([], [group.name])
    update_stream(lane.database, lane.name, {"retain_max_bytes": 10}, request_id=unique("update"))
    capture(lane.database)
    report = decide(lane)
    assert (report["rule"], report["lost"]) == ("max_bytes", {})
    assert report["cut"] == {"0.0": 10, "1.0": 0}


# Time-outs.


def pass_time(lane: Lane, seconds: float) -> None:
    """As if all that has happened had happened so much earlier."""
    mine = "group_id IN (SELECT group_id FROM reader_group_stream WHERE stream_id = :s)"
    by = {"by": seconds, "s": lane.stream_id}
    for table, column, where in (
        ("reader_group", "moved_at", mine),
        ("stream_cut", "recorded_at", "stream_id = :s"),
        ("retention_due", "due_at", "stream_id = :s"),
        ("reader", "lease_until", f"lease_until > '-infinity' AND {mine}"),
    ):
        run(
            lane.database,
            f"UPDATE {table} SET {column} = {column} - :by * interval '1 second' "
            f"WHERE {where} AND :s > 0",
            **by,
        )
    run(
        lane.database,
        """UPDATE time_index SET clock = clock - CAST(CAST(:by AS numeric) * 1000000 AS bigint)
        WHERE stream_id = :s""",
        **by,
    )


@pytest.fixture
def alone(database: Database) -> Lane:
    """A stream in a database of its own."""
    return Lane.made(database)


def two_groups(lane: Lane) -> tuple[Group, Group]:
    """One that has read everything, and a dead one with a time-out of a day."""
    living, dead = Group.made(lane, time_out=DAY), Group.made(lane, time_out=DAY)
    lane.append({"0.0": 3})
    living.reader().read_all()
    living.checkpoint()
    return living, dead


def test_a_dead_group_is_left_out_after_its_time_out_though_the_periodic_jobs_run(
    alone: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    living, dead = two_groups(alone)
    reports = []
    with caplog.at_level(logging.WARNING, "weir.retention"):
        for _ in range(3 * 4):
            pass_time(alone, DAY / 4 + 1)
            capture(alone.database)
            expire(alone.database, 60.0)
            checkpoint_all(alone.database)
            reports += retain(alone.database)
    # It is looked at when the time-out is over, by itself.
    chosen = [report for report in reports if report["cut"]]
    assert [(r["rule"], r["left_out"], r["lost"]) for r in chosen] == [
        ("consumed", [dead.name], {dead.name: 3})
    ]
    assert f"subscriber {dead.name} of stream {alone.name} has timed out" in caplog.text
    assert "loses 3 unread events" in caplog.text
    assert alone.head() == {"0.0": 3, "1.0": 0}
    assert dead.cut() == {"0.0": 0, "1.0": 0}, "its position is kept"
    [row] = rows(alone.database, "SELECT * FROM retention_decisions WHERE cut IS NOT NULL")
    assert (row.left_out, row.lost) == ([dead.name], {dead.name: 3})
    assert living.published() == {"0.0": 3, "1.0": 0}


def test_before_its_time_out_it_holds_everything(alone: Lane) -> None:
    _, dead = two_groups(alone)
    pass_time(alone, DAY - 10)
    report = decide(alone)
    assert (report["rule"], report["held_by"]) == ("nothing_consumed", [dead.name])
    [[at]] = rows(alone.database, "SELECT min(due_at) - clock_timestamp() FROM retention_due")
    assert 0 < at.total_seconds() <= 10


def test_a_living_group_that_has_read_all_of_an_idle_stream_is_not_timed_out(alone: Lane) -> None:
    living, _ = two_groups(alone)
    other = Group.made(alone, time_out=30 * DAY)
    pass_time(alone, 10 * DAY)
    assert living.name not in decide(alone)["left_out"]
    # Then something comes, and it has its time from then on.
    alone.append({"0.0": 4})
    other.reader().read_all()
    other.checkpoint()
    report = decide(alone)
    assert living.name not in report["left_out"]
    assert report["held_by"] == [living.name]
    pass_time(alone, DAY + 1)
    assert living.name in decide(alone)["left_out"]


def test_readers_that_are_at_work_keep_their_group_in(alone: Lane) -> None:
    _, slow = two_groups(alone)
    batch = slow.reader().must_open()
    pass_time(alone, 2 * DAY)
    run(alone.database, "UPDATE reader SET lease_until = clock_timestamp() + interval '1 minute'")
    assert decide(alone)["left_out"] == []
    slow.lapse("reader")
    assert decide(alone)["left_out"] == [slow.name]
    assert batch.events == 3


def test_a_reader_that_dies_at_its_work_is_noticed_though_nobody_says_so(alone: Lane) -> None:
    _, dead = two_groups(alone)
    dead.reader().must_open()
    assert [report["left_out"] for report in retain(alone.database)] == [[]]
    pass_time(alone, 2 * DAY)
    assert [report["left_out"] for report in retain(alone.database)] == [[dead.name]]


def test_a_group_whose_readers_return_in_time_is_in_again(alone: Lane) -> None:
    _, late = two_groups(alone)
    Group.made(alone)  # holds everything, so that nothing is lost yet
    pass_time(alone, 2 * DAY)
    assert decide(alone)["left_out"] == [late.name]
    reader = late.reader()
    reader.commit(reader.must_open())
    assert decide(alone)["left_out"] == []
    alone.append({"0.0": 1})
    pass_time(alone, DAY / 2)
    assert decide(alone)["left_out"] == []


def test_a_group_whose_readers_return_too_late_is_told_what_it_lost(alone: Lane) -> None:
    _, late = two_groups(alone)
    pass_time(alone, 2 * DAY)
    assert decide(alone)["lost"] == {late.name: 3}
    with pytest.raises(Truncated, match="3 events of stream"):
        late.reader().open()
    update_reader_group(alone.database, late.name, on_gap="skip", request_id=unique("update"))
    alone.append({"1.0": 2})
    assert late.reader().must_open().events == 2
    assert decide(alone)["left_out"] == []


def test_who_becomes_a_subscriber_has_its_time_from_then_on(alone: Lane) -> None:
    _, other = two_groups(alone)
    update_reader_group(alone.database, other.name, subscriber=False, request_id=unique("u"))
    pass_time(alone, 2 * DAY)
    update_reader_group(alone.database, other.name, subscriber=True, request_id=unique("u"))
    assert decide(alone)["left_out"] == []


@pytest.mark.parametrize(
    ("options", "said"),
    [({"release": "sometimes"}, "release is 'sometimes'"), ({"time_out": 0}, "is 0 s; give more")],
)
def test_what_a_subscriber_can_not_be_is_refused(
    lane: Lane, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        Group.made(lane, **options)
