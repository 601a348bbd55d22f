"""What is said, and refused, when retention is chosen and when groups begin, move or end."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.retention import consume, decide
from tests.world.streams import Lane, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.reader_groups.groups.lifecycle import (
    create_reader_group,
    delete_reader_group,
    fork_reader_group,
)
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.capture import capture
from weir.retention.choose import choosing
from weir.retention.release import release

WEEK = 7 * 86_400


def full(database: Database, **settings: Any) -> Lane:
    """A stream with six events."""
    lane = Lane.made(database, **settings)
    lane.append({"0.0": 4, "1.0": 2})
    return lane


def begin(lane: Lane, start: str, **settings: Any) -> list[str]:
    """What a new subscriber says."""
    name = unique("new")
    made = create_reader_group(
        lane.database, name, [lane.name], start=start, request_id=name, **settings
    )
    return [line.replace(name, "it").replace(str(lane.name), "s") for line in made["deletes"]]


def choose(lane: Lane, allow_loss: bool = False, **changes: Any) -> list[str]:
    """What a change of the retention says."""
    done = update_stream(
        lane.database, lane.name, changes, choosing=choosing(allow_loss), request_id=unique("u")
    )
    return [line.replace(str(lane.name), "s") for line in done["deletes"]]


def test_nothing_is_said_or_deleted_by_groups_of_a_stream_that_keeps_everything(
    shared_database: Database,
) -> None:
    lane = full(shared_database)
    behind = Group.made(lane, subscriber=False)
    assert begin(lane, "tail") == begin(lane, "head") == []
    assert (decide(lane)["rule"], decide(lane)["events"]) == ("keep", 0)
    consume(behind)


DELETES = "events of s that all subscribers have released are truncated "


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ("tail", "reader group it is past 6 events of s; that releases 6 events at once"),
        ("0.0=1, 1.0=2", "reader group it is past 3 events of s; that releases 3 events at once"),
        ("head", "reader group it is at the head of s, and releases nothing yet"),
    ],
)
def test_a_subscriber_says_what_is_deleted_and_what_it_releases_by_where_it_begins(
    shared_database: Database, start: str, said: str
) -> None:
    lane = full(shared_database, retention="consumed", retain_min_age=WEEK)
    assert begin(lane, start) == [f"{DELETES}7 d after they were appended", said]
    lane = full(shared_database, retention="consumed")
    assert begin(lane, start) == [f"{DELETES}in the next run of retention", said]


def test_a_subscriber_beside_another_one_releases_only_what_that_one_has_released(
    shared_database: Database,
) -> None:
    lane = full(shared_database, retention="consumed")
    Group.made(lane, start="0.0=1, 1.0=0")
    assert begin(lane, "tail")[1] == (
        "reader group it is past 6 events of s; that releases nothing more"
    )
    assert decide(lane)["events"] == 1


def test_a_group_that_is_no_subscriber_is_told_that_nothing_waits_for_it(
    shared_database: Database,
) -> None:
    read = full(shared_database, retention="consumed")
    assert len(begin(read, "tail", subscriber=False)) == 1
    lane = full(shared_database, retention="consumed")
    assert begin(lane, "head", subscriber=False)[1:] == [
        "reader group it is no subscriber, so nothing waits for its 6 unread events of s"
    ]


# Each would release events that the group behind, which is no subscriber, has not read.
Act = Callable[..., Mapping[str, Any]]  # takes allow_loss and request_id


def create(lane: Lane) -> Act:
    return partial(create_reader_group, lane.database, unique("late"), [lane.name], start="tail")


def fork(lane: Lane) -> Act:
    of = Group.made(lane, subscriber=False, start="tail")
    return partial(fork_reader_group, lane.database, of.name, unique("fork"))


def reset(lane: Lane) -> Act:
    return partial(reset_reader_group, lane.database, Group.made(lane).name, "tail")


def subscribe(lane: Lane) -> Act:
    group = Group.made(lane, subscriber=False, start="tail")
    return partial(update_reader_group, lane.database, group.name, subscriber=True)


def read_it_too(lane: Lane) -> Act:
    other = Lane.made(lane.database)
    group, both = Group.made(other), [other.name, lane.name]
    return partial(update_reader_group, lane.database, group.name, streams=both, start="tail")


def stop_holding(lane: Lane) -> Act:
    slow, _ = Group.made(lane), Group.made(lane, start="tail")
    return partial(update_reader_group, lane.database, slow.name, subscriber=False)


def stop_reading(lane: Lane) -> Act:
    other = Lane.made(lane.database)
    slow, _ = Group.made(lane, other), Group.made(lane, start="tail")
    return partial(update_reader_group, lane.database, slow.name, streams=[other.name])


ACTS = [create, fork, reset, subscribe, read_it_too, stop_holding, stop_reading]


@pytest.mark.parametrize("made", ACTS, ids=lambda made: made.__name__)
def test_what_would_lose_unread_events_of_others_is_refused_with_numbers_unless_allowed(
    shared_database: Database, made: Callable[[Lane], Act]
) -> None:
    lane = full(shared_database, retention="consumed", retain_min_age=WEEK)
    behind, act = Group.made(lane, start="0.0=1, 1.0=0", subscriber=False), made(lane)
    released = "SELECT events FROM released_by_all(ARRAY[CAST(:s AS bigint)], '')"
    before = lane.value(released)
    with raises(f"would_lose_data 6 events {lane.name} {behind.name} 5 allow_loss"):
        act(request_id=unique("refused"))
    assert lane.value(released) == before == 0
    done = act(allow_loss=True, request_id=unique("allowed"))
    lost = f"reader group {behind.name} loses 5 unread events of {lane.name} by that"
    assert lost in done["deletes"]
    update_stream(lane.database, lane.name, {"retain_min_age": None}, request_id=unique("u"))
    assert decide(lane)["events"] == 6


@pytest.mark.parametrize("made", ACTS, ids=lambda made: made.__name__)
def test_nothing_of_that_is_refused_where_everything_is_kept_or_everybody_has_read(
    shared_database: Database, made: Callable[[Lane], Act]
) -> None:
    kept = full(shared_database)
    Group.made(kept, subscriber=False)
    assert made(kept)(request_id=unique("kept"))["deletes"] == []
    if made is not stop_holding:  # then it is the group itself that would lose
        read = full(shared_database, retention="consumed")
        Group.made(read, subscriber=False).reader().read_all()
        made(read)(request_id=unique("read"))


def test_a_deleted_subscriber_says_what_is_released_by_that(shared_database: Database) -> None:
    lane = full(shared_database, retention="consumed")
    behind = Group.made(lane, subscriber=False)
    slow, _ = Group.made(lane), Group.made(lane, start="tail")
    done = delete_reader_group(lane.database, slow.name, request_id=unique("delete"))
    assert done["deletes"][1:] == [
        f"that releases 6 events of {lane.name} at once",
        f"reader group {behind.name} loses 6 unread events of {lane.name} by that",
    ]
    only = full(shared_database, retention="consumed")
    group = Group.made(only, start="tail")
    done = delete_reader_group(lane.database, group.name, request_id=unique("delete"))
    assert len(done["deletes"]) == 1, "without a subscriber nothing is released"


def test_a_subscriber_that_is_behind_loses_nothing_and_one_that_has_given_away_does(
    shared_database: Database,
) -> None:
    lane = full(shared_database)
    Group.made(lane)
    assert choose(lane, retention="consumed") == [f"{DELETES}7 d after they were appended"]
    lane = full(shared_database)
    group = Group.made(lane, release="manual")
    release(lane.database, group.name, "tail", request_id=unique("r"))
    with raises(f"would_lose_data {group.name} 6"):
        choose(lane, retention="consumed")


def test_choosing_consumed_names_who_would_lose_and_says_how_much_goes(
    shared_database: Database,
) -> None:
    lane = full(shared_database)
    behind, reading = Group.made(lane, subscriber=False), Group.made(lane)
    consume(reading)
    with raises(f"would_lose_data {lane.name} 6 events {behind.name} 6 allow_loss"):
        choose(lane, retention="consumed")
    assert decide(lane)["rule"] == "keep"
    assert choose(lane, True, retention="consumed", retain_min_age=None) == [
        f"{DELETES}in the next run of retention",
        "that concerns 6 events of s that are there",
        f"reader group {behind.name} loses 6 unread events of s by that",
    ]
    assert decide(lane)["events"] == 6


def test_choosing_a_maximum_names_who_would_lose_by_it(shared_database: Database) -> None:
    lane = full(shared_database)
    slow, behind = Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": 1})
    capture(lane.database)
    lane.append({"0.0": 3})
    for one in ("size", "consumed"):
        with raises(f"would_lose_data 7 events {slow.name} 7 {behind.name} 7"):
            choose(lane, retention=one, retain_min_age=None, retain_max_bytes=30)
    assert choose(lane, True, retention="size", retain_max_bytes=30)[:2] == [
        "events of s beyond 30 B are truncated, read or not",
        "that concerns 7 events of s that are there",
    ]
    assert choose(lane, retention="age", retain_max_age=WEEK, retain_max_bytes=None) == [
        "events of s older than 7 d are truncated, read or not",
        f"reader group {behind.name} is no subscriber, so nothing waits for its 10 unread events "
        "of s",
    ]
    assert choose(lane, retention="keep") == ["stream s keeps everything (its retention is keep)"]
    assert choose(lane, tags=("a",)) == []
