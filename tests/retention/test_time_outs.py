"""Subscribers whose readers do nothing: left out in time, and in again when they return."""

import logging
from collections.abc import Callable

import pytest

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


# What happens to a group with a time-out of a day that has three events to read.
STEPS: dict[str, Callable[[Lane, Group], object]] = {
    "almost a day": lambda lane, group: pass_time(lane, DAY - 3600),
    "a day": lambda lane, group: pass_time(lane, DAY + 1),
    "an event": lambda lane, group: lane.append({"0.0": 1}),
    "reads": lambda lane, group: group.reader().read_all(),
    "reads one": lambda lane, group: group.reader().read_batch(budget=1),
    "opens": lambda lane, group: group.reader().must_open(),
    "renews": lambda lane, group: run(
        lane.database, "UPDATE reader SET lease_until = clock_timestamp() + interval '1 minute'"
    ),
    "dies": lambda lane, group: group.lapse("reader"),
    "by hand": lambda lane, group: group.update(release="manual"),
    "lets go": lambda lane, group: let_go(group, '{"0.0": 1, "1.0": 0}'),
    "lets all go": lambda lane, group: let_go(group, "position"),
    "is none": lambda lane, group: group.update(subscriber=False, allow_loss=True),
    "subscribes": lambda lane, group: group.update(subscriber=True),
}
SLOW = "by hand, almost a day, reads one, an event, almost a day, reads one"


def let_go(group: Group, at: str) -> None:
    release(group.database, group.name, at, request_id=unique("release"))


@pytest.mark.parametrize(
    ("steps", "timed_out"),
    [
        ("almost a day", False),
        ("a day", True),
        ("a day, reads", False),
        ("reads, a day, an event", False),  # it has its time from then on
        ("reads, a day, an event, a day", True),
        ("opens, a day, renews", False),
        ("opens, a day, renews, dies", True),
        ("is none, a day, a day, subscribes", False),
        ("almost a day, by hand, almost a day", False),
        (SLOW, True),  # it reads, and lets go of nothing
        (f"{SLOW}, lets go, almost a day", False),
        (f"{SLOW}, lets go, almost a day, a day", True),
        (f"{SLOW}, reads, lets all go, a day, a day", False),  # it holds nothing
    ],
)
def test_a_group_has_its_time_from_what_it_did_last_or_what_came_since(
    alone: Lane, steps: str, timed_out: bool
) -> None:
    Group.made(alone)  # holds everything, so that nothing is lost
    group = Group.made(alone, time_out=DAY)
    alone.append({"0.0": [1, 1, 1]})
    for step in steps.split(", "):
        STEPS[step](alone, group)
    report = decide(alone)
    assert (group.name in report["timed_out"], report["cut"]) == (timed_out, None)


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
