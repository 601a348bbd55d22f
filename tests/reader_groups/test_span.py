"""Of a span that is partly truncated nothing is left out without a flag, and a word."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import create_reader_group, fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.manual_truncation import in_words, truncate_before
from weir.retention.prune import prune

HEAD = {"0.0": 8, "1.0": 5}
_Made = Callable[..., Mapping[str, Any]]


@pytest.fixture
def times(lane: Lane) -> list[datetime]:
    """Append 5 and 5, then 3, truncate all of that, append 2, and return the times between."""

    def now() -> datetime:
        at: datetime = lane.value("SELECT clock_timestamp()")
        return at

    times = [now()]
    for written in ({"0.0": 5, "1.0": 5}, {"0.0": 3}):
        lane.append(written)
        times.append(now())
    lane.truncate("0.0=8, 1.0=5", request_id="me")
    lane.append({"1.0": 2})
    return [*times, now()]


def created(lane: Lane, start: str = "head", end: str = "", **options: Any) -> Mapping[str, Any]:
    """Create a group, and return what it says."""
    return create_reader_group(
        lane.database, unique("g"), [lane.name], start=start, end=end, request_id=unique("c"),
        **options,
    )  # fmt: skip


def test_with_the_flag_a_group_begins_at_the_head_and_says_what_is_missing(
    lane: Lane, times: list[datetime]
) -> None:
    first, second, third, last = map(str, times)
    later = json.dumps({"0.0": 8, "1.0": 6})
    for start, end, gone in (
        (first, "", 13), (second, "", 3), (f"time {second}", last, 3), ("0.0=5, 1.0=5", "", 3),
        ("0.0=0, 1.0=0", later, 13), ("0.0=5, 1.0=0", last, 8), (second, later, 3),
        (json.dumps({str(lane.name): {"0.0": 8, "1.0": 1}}), "", 4),
    ):  # fmt: skip
        with raises(f"events_truncated {gone} events hand me head allow_truncated"):
            created(lane, start, end)
        made = created(lane, start, end, allow_truncated=True)
        assert made["start"] == {str(lane.name): HEAD}
        [line] = made["missing"]
        assert line.startswith(f"{gone} events of stream {lane.name} were truncated, the last of")
        assert line.endswith("by hand: me); reading begins at the head, 0.0=8, 1.0=5")
    with raises("events_truncated 3 events"):
        created(lane, "0.0=5, 1.0=6")  # it is ahead of the head in the other segment
    for start in (third, "tail", "0.0=8, 1.0=5", "0.0=8, 1.0=7"):
        assert created(lane, start)["missing"] == [], "nothing of it is gone"


def test_a_window_of_which_nothing_is_left_is_refused_and_by_the_flag_empty(
    lane: Lane, times: list[datetime]
) -> None:
    first, second, third, _ = map(str, times)
    for start, end, gone in (
        (first, second, 10), (second, third, 3), ("head", second, 10), ("head", third, 13),
        ("head", "0.0=5, 1.0=5", 10), ("head", "0.0=8, 1.0=4", 12),
        ("0.0=8, 1.0=5", "0.0=2, 1.0=0", 2),
        ("0.0=1, 1.0=0", "0.0=5, 1.0=0", 4), ("0.0=5, 1.0=5", third, 3),
        (second, "0.0=6, 1.0=5", 1),
    ):  # fmt: skip
        with raises(f"events_truncated {gone} later end allow_truncated"):
            created(lane, start, end)
        made = created(lane, start, end, allow_truncated=True)
        assert made["start"] == made["end"] == {str(lane.name): HEAD}
        assert made["missing"][0].endswith("nothing is left before the end")
    assert created(lane, end=first)["missing"] == [], "nothing was ever there"
    with raises("position_invalid start"):
        created(lane, "0.0=8, 1.0=6", "0.0=2, 1.0=0")


def test_an_end_before_the_head_in_one_segment_leaves_what_is_before_it_in_the_other(
    lane: Lane, times: list[datetime]
) -> None:
    with raises("events_truncated 10 later end allow_truncated"):
        created(lane, "head", "0.0=5, 1.0=7")
    made = created(lane, "head", "0.0=5, 1.0=7", allow_truncated=True)
    assert made["end"] == {str(lane.name): {"0.0": 8, "1.0": 7}}
    assert made["missing"][0].endswith("reading begins at the head, 0.0=8, 1.0=5")


def test_a_group_that_begins_at_the_head_says_what_was_truncated_before_it(
    lane: Lane, times: list[datetime]
) -> None:
    [line] = created(lane)["missing"]
    assert line.startswith("13 events")
    assert "reading begins at the head" in line
    whole = Lane.made(lane.database)
    whole.append({"0.0": 5})
    assert created(whole)["missing"] == []
    both: dict[str, Any] = {"start": "head", "end": str(whole.value("SELECT clock_timestamp()"))}
    lane.truncate(json.dumps(lane.tail()))  # it is quiet now
    made = create_reader_group(
        lane.database, unique("g"), [lane.name, whole.name], request_id=unique("c"), **both
    )
    assert [line.split(" events ")[0] for line in made["missing"]] == ["15"]


def test_forks_resets_and_new_streams_take_the_flag_too(lane: Lane) -> None:
    other = Lane.made(lane.database)
    other.append({"0.0": 1})
    lane.append({"0.0": 5})
    group, late = Group.made(lane, subscriber=False), Group.made(other)
    checkpoint(lane.database, group.name, name="early", barrier=False, request_id=unique("k"))
    lane.append({"0.0": 3})
    lane.truncate("0.0=6, 1.0=0")
    base = {"database": lane.database, "request_id": "", "allow_truncated": False}
    cases: list[tuple[Callable[..., Mapping[str, Any]], dict[str, Any], int]] = [
        (fork_reader_group, {"name": group.name, "at": "checkpoint early"}, 6),
        (fork_reader_group, {"name": group.name}, 6),
        (fork_reader_group, {"name": group.name, "at": "0.0=5, 1.0=0"}, 1),
        (reset_reader_group, {"name": group.name, "to": "start"}, 6),
        (reset_reader_group, {"name": group.name, "to": "0.0=2, 1.0=0"}, 4),
        (update_reader_group, {"name": late.name, "streams": [other.name, lane.name], "start":
            json.dumps({str(lane.name): {"0.0": 3, "1.0": 0}})}, 3),
    ]  # fmt: skip
    for work, given, gone in cases:
        if work is fork_reader_group:
            given |= {"new_name": unique("f")}
        with raises(f"events_truncated {gone} allow_truncated"):
            work(**(base | given | {"request_id": unique("r")}))
        done = work(**(base | given | {"request_id": unique("r"), "allow_truncated": True}))
        assert done["missing"][0].startswith(f"{gone} event")
    assert group.cut() == Group(lane.database, late.name, (lane,)).cut() == {"0.0": 6, "1.0": 0}
    assert sorted(late.reader().read_all())[:1]


def test_a_group_that_becomes_a_subscriber_too_late_says_so(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane, subscriber=False)
    lane.truncate("0.0=4, 1.0=0")
    change: dict[str, Any] = {"subscriber": True, "request_id": unique("u")}
    with raises("events_truncated 4 allow_truncated"):
        update_reader_group(lane.database, group.name, **change)
    done = update_reader_group(lane.database, group.name, allow_truncated=True, **change)
    assert done["missing"][0].startswith("4 events")
    assert "begins" not in done["missing"][0], "its position stays"
    with raises("events_truncated 4 hand position"):
        group.reader().read_all()


def test_a_truncation_where_nothing_is_left_says_who_truncated(
    lane: Lane, times: list[datetime]
) -> None:
    for at in times[1:3]:
        for dry_run in (True, False):
            done = truncate_before(
                lane.database, lane.name, str(at), dry_run=dry_run, request_id=unique("t")
            )
            assert (done["events"], done["head"]) == (0, HEAD)
            [line, *_] = in_words(done, dry_run=dry_run)
            assert line.startswith("nothing is left to truncate there: 13 events of stream")
            assert "hand: me" in line
    with raises("position_invalid 0.0 nothing 2 events me head"):
        lane.truncate("0.0=2, 1.0=0")
    assert lane.value("SELECT count(*) FROM truncations WHERE stream = :n", n=str(lane.name)) == 1


def test_a_cut_whose_metadata_was_pruned_is_refused_with_the_time_of_the_last_truncation(
    lane: Lane,
) -> None:
    lane.append({"0.0": 5, "1.0": 1})
    new, other = lane.scale("0.0")
    lane.append({new: 3})
    group = Group.made(lane, subscriber=False)
    lane.truncate(f"{new}=1, {other}=0, 1.0=1", request_id="me")
    reset_reader_group(lane.database, group.name, "head", request_id=unique("r"))
    assert prune(lane.database, 0)
    for start in ("0.0=2, 1.0=0", json.dumps({str(lane.name): {"0.0": 2, "1.0": 0}})):
        for allowed in (False, True):
            with raises("events_truncated 0.0 UTC hand me head"):
                created(lane, start, allow_truncated=allowed)
    with raises("events_truncated 0.0 hand me head"):
        reset_reader_group(lane.database, group.name, "start", request_id=unique("r"))
    with raises("events_truncated 0.0 hand me head"):
        lane.truncate("0.0=2, 1.0=0")
