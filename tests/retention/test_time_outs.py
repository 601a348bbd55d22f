"""Subscribers whose readers do nothing: left out in time, and in again when they return."""

import logging

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.retention import DAY, consume, decide, pass_time
from tests.world.streams import Lane, rows, run, unique
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.groups.readers import expire
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.capture import capture
from weir.retention.release import release
from weir.retention.run import retain


def two_groups(lane: Lane) -> tuple[Group, Group]:
    """One that has read everything, and one that reads no more, with time-outs of a day."""
    active, idle = Group.made(lane, time_out=DAY), Group.made(lane, time_out=DAY)
    lane.append({"0.0": 3})
    consume(active)
    return active, idle


def test_a_group_that_reads_no_more_is_left_out_after_its_time_out_though_the_periodic_jobs_run(
    alone: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    active, idle = two_groups(alone)
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
    assert [(r["rule"], r["timed_out"], r["lost"]) for r in chosen] == [
        ("consumed", [idle.name], {idle.name: 3})
    ]
    assert f"subscriber {idle.name} of stream {alone.name} has timed out" in caplog.text
    assert "loses 3 unread events" in caplog.text
    assert alone.head() == {"0.0": 3, "1.0": 0}
    assert idle.cut() == {"0.0": 0, "1.0": 0}, "its position is kept"
    [row] = rows(alone.database, "SELECT * FROM retention_decisions WHERE cut IS NOT NULL")
    assert (row.timed_out, row.lost) == ([idle.name], {idle.name: 3})
    assert active.released() == {"0.0": 3, "1.0": 0}


def test_before_its_time_out_it_holds_everything(alone: Lane) -> None:
    _, idle = two_groups(alone)
    pass_time(alone, DAY - 10)
    report = decide(alone)
    assert (report["rule"], report["held_by"]) == ("nothing_consumed", [idle.name])
    [[at]] = rows(alone.database, "SELECT min(due_at) - clock_timestamp() FROM retention_queue")
    assert 0 < at.total_seconds() <= 10


def test_a_living_group_that_has_read_all_of_an_idle_stream_is_not_timed_out(alone: Lane) -> None:
    active, _ = two_groups(alone)
    other = Group.made(alone, time_out=30 * DAY)
    pass_time(alone, 10 * DAY)
    assert active.name not in decide(alone)["timed_out"]
    # Then something comes, and it has its time from then on.
    alone.append({"0.0": 4})
    consume(other)
    report = decide(alone)
    assert active.name not in report["timed_out"]
    assert report["held_by"] == [active.name]
    pass_time(alone, DAY + 1)
    assert active.name in decide(alone)["timed_out"]


def test_readers_that_are_at_work_keep_their_group_in(alone: Lane) -> None:
    _, slow = two_groups(alone)
    batch = slow.reader().must_open()
    pass_time(alone, 2 * DAY)
    run(alone.database, "UPDATE reader SET lease_until = clock_timestamp() + interval '1 minute'")
    assert decide(alone)["timed_out"] == []
    slow.lapse("reader")
    assert decide(alone)["timed_out"] == [slow.name]
    assert batch.events == 3


def test_a_reader_that_dies_at_its_work_is_noticed_though_nobody_says_so(alone: Lane) -> None:
    _, idle = two_groups(alone)
    idle.reader().must_open()
    assert [report["timed_out"] for report in retain(alone.database)] == [[]]
    pass_time(alone, 2 * DAY)
    assert [report["timed_out"] for report in retain(alone.database)] == [[idle.name]]


def test_who_could_not_renew_a_lease_as_postgres_was_away_has_ten_minutes_to_come_back(
    alone: Lane,
) -> None:
    _, slow = two_groups(alone)
    slow.reader().must_open()
    pass_time(alone, 2 * DAY)
    run(
        alone.database,
        "UPDATE reader SET lease_until = pg_postmaster_start_time() - interval '1 minute'",
    )
    [[seconds]] = slow.rows(
        "SELECT times_out_at(:g, :s) - pg_postmaster_start_time()", s=alone.stream_id
    )
    assert seconds.total_seconds() == 600


def test_a_stream_that_a_group_begins_to_read_is_held_for_the_whole_time_out(
    alone: Lane,
) -> None:
    active, _ = two_groups(alone)
    other = Lane.made(alone.database, retention="consumed")
    other.append({"0.0": 5})
    Group.made(other, release="manual")
    for lane in (alone, other):
        pass_time(lane, 3 * DAY)
    update_reader_group(
        alone.database, active.name, streams=[alone.name, other.name], start="head",
        request_id=unique("update"),
    )  # fmt: skip
    assert decide(other)["timed_out"] == []
    pass_time(other, DAY + 1)
    assert decide(other)["timed_out"] == [active.name]


def test_a_group_whose_readers_return_in_time_is_in_again(alone: Lane) -> None:
    _, late = two_groups(alone)
    Group.made(alone)  # holds everything, so that nothing is lost yet
    pass_time(alone, 2 * DAY)
    assert decide(alone)["timed_out"] == [late.name]
    reader = late.reader()
    reader.commit(reader.must_open())
    assert decide(alone)["timed_out"] == []
    alone.append({"0.0": 1})
    pass_time(alone, DAY / 2)
    assert decide(alone)["timed_out"] == []


def test_a_group_that_is_in_again_lets_go_what_it_has_released(alone: Lane) -> None:
    alone.append({"0.0": 3})
    group = Group.made(alone, time_out=DAY, release="manual")
    release(alone.database, group.name, '{"0.0": 1, "1.0": 0}', request_id=unique("release"))
    pass_time(alone, 2 * DAY)
    capture(alone.database)
    assert [report["timed_out"] for report in retain(alone.database)] == [[group.name]]
    assert retain(alone.database) == []
    release(alone.database, group.name, '{"0.0": 1, "1.0": 0}', request_id=unique("release"))
    assert [report["rule"] for report in retain(alone.database)] == ["consumed"]
    assert alone.head() == {"0.0": 1, "1.0": 0}


def test_who_releases_by_hand_is_timed_out_by_what_it_releases_not_by_what_it_reads(
    alone: Lane,
) -> None:
    alone.append({"0.0": [1, 1, 1]})
    group = Group.made(alone, time_out=DAY, release="manual")
    Group.made(alone)  # holds everything, so that nothing is lost
    reader = group.reader()
    for _ in range(3):
        pass_time(alone, DAY / 2 - 10)
        reader.commit(reader.must_open(budget=1))
    assert decide(alone)["timed_out"] == [group.name], "it reads, and lets go of nothing"
    release(alone.database, group.name, '{"0.0": 1, "1.0": 0}', request_id=unique("release"))
    assert decide(alone)["timed_out"] == []
    pass_time(alone, DAY - 10)
    assert decide(alone)["timed_out"] == []
    pass_time(alone, 20)
    assert decide(alone)["timed_out"] == [group.name]
    release(alone.database, group.name, "position", request_id=unique("release"))
    pass_time(alone, 9 * DAY)
    assert decide(alone)["timed_out"] == [], "it holds nothing"


def test_who_begins_to_release_by_hand_has_its_time_from_then_on(alone: Lane) -> None:
    group = Group.made(alone, time_out=DAY)
    alone.append({"0.0": 3})
    pass_time(alone, DAY - 10)
    update_reader_group(alone.database, group.name, release="manual", request_id=unique("u"))
    pass_time(alone, DAY - 10)
    assert decide(alone)["timed_out"] == []


def test_a_group_whose_readers_return_too_late_is_told_what_it_lost(alone: Lane) -> None:
    _, late = two_groups(alone)
    pass_time(alone, 2 * DAY)
    assert decide(alone)["lost"] == {late.name: 3}
    with raises("events_truncated 3 events"):
        late.reader().open()
    update_reader_group(alone.database, late.name, on_gap="skip", request_id=unique("update"))
    alone.append({"1.0": 2})
    assert late.reader().must_open().events == 2
    assert decide(alone)["timed_out"] == []


def test_who_becomes_a_subscriber_has_its_time_from_then_on(alone: Lane) -> None:
    _, other = two_groups(alone)
    update_reader_group(
        alone.database, other.name, subscriber=False, allow_loss=True, request_id=unique("u")
    )
    pass_time(alone, 2 * DAY)
    update_reader_group(alone.database, other.name, subscriber=True, request_id=unique("u"))
    assert decide(alone)["timed_out"] == []
