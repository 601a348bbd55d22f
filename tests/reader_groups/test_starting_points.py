"""Where a group begins and ends: at cuts, at times, and not below the head."""

import json
from datetime import datetime, timedelta

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.reader_groups.groups.lifecycle import create_reader_group, fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.manual_truncation import truncate_before
from weir.retention.release import release


def test_whoever_creates_a_group_is_told_where_it_begins_and_ends(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    name, start, end = unique("bounded"), "0.0=2, 1.0=1", "0.0=4, 1.0=3"
    made = create_reader_group(
        lane.database, name, [lane.name], start=start, end=end, request_id=name
    )
    assert made["start"] == {str(lane.name): {"0.0": 2, "1.0": 1}}
    assert made["end"] == {str(lane.name): {"0.0": 4, "1.0": 3}}
    name = unique("open")
    assert create_reader_group(lane.database, name, [lane.name], request_id=name)["end"] == {}


def test_wherever_a_place_is_asked_for_it_may_be_a_time(lane: Lane) -> None:
    lane.append({"0.0": 5})
    noon: datetime = lane.value("SELECT clock_timestamp()")
    lane.append({"0.0": 3, "1.0": 4})
    later: datetime = lane.value("SELECT clock_timestamp()")
    lane.append({"1.0": 4})
    for at in (str(noon), noon.isoformat(), f"time {noon}"):
        assert Group.made(lane, start=at).cut() == {"0.0": 5, "1.0": 0}
    between = Group.made(lane, start=str(noon), end=str(later), release="manual")
    assert sorted(between.reader().read_all()) == [("0.0", 5, 8), ("1.0", 0, 4)]
    release(lane.database, between.name, str(noon), request_id=unique("r"))
    reset_reader_group(
        lane.database, between.name, str(noon), allow_repeat=True, request_id=unique("r")
    )
    assert between.cut() == {"0.0": 5, "1.0": 0}
    forked = Group(lane.database, unique("forked"), (lane,))
    fork_reader_group(
        lane.database, between.name, forked.name, at=str(later), request_id=unique("f")
    )
    assert forked.cut() == {"0.0": 8, "1.0": 4}
    truncate_before(lane.database, lane.name, str(noon), dry_run=False, request_id=unique("t"))
    assert lane.head() == {"0.0": 5, "1.0": 0}


def test_a_place_that_names_a_stream_which_is_not_asked_for_is_refused(lane: Lane) -> None:
    group = Group.made(lane, release="manual")
    lane.append({"0.0": 3})
    cut = {"0.0": 1, "1.0": 0}
    release(lane.database, group.name, json.dumps({str(lane.name): cut}), request_id=unique("r"))
    place = json.dumps({str(lane.name): cut, "no/such": {"0.0": 1}})
    says = f"position_invalid no/such {lane.name} needed"
    with raises(says):
        release(lane.database, group.name, place, request_id=unique("r"))
    with raises(says):
        Group.made(lane, start=place)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("yesterday", "position_invalid 'yesterday'"),
        ("0.0=1, x", "cut_invalid 'x'"),
        ("time soon", "time_invalid 'soon'"),
        ("0.0=99, 1.0=0", "cut_invalid 99"),
        ("7.7=0", "cut_invalid 7.7 because"),
        ("checkpoint x", "position_invalid belongs"),
        ('{"test/other": {"0.0": 1}}', "position_invalid has no"),
    ],
)
def test_a_place_that_is_none_is_refused(lane: Lane, start: str, says: str) -> None:
    with raises(says):
        Group.made(lane, start=start)


def test_a_time_to_come_and_an_end_before_the_start_are_refused(lane: Lane) -> None:
    at: datetime = lane.value("SELECT clock_timestamp()")
    with raises("time_in_future"):
        Group.made(lane, start=f"time {(at + timedelta(hours=1)).isoformat()}")
    lane.append({"0.0": 5})
    with raises("position_invalid 0.0 later"):
        Group.made(lane, start="0.0=4, 1.0=0", end="0.0=2, 1.0=0")
