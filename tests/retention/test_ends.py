"""Groups that stop for good: what comes behind their ends is none of their business."""

import json
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.retention import DAY, consume, decide, pass_time
from tests.world.streams import Lane, unique
from weir.controller.update import update_stream
from weir.reader_groups.groups.lifecycle import fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.capture import capture
from weir.retention.release import release
from weir.retention.run import retain

END = "0.0=5, 1.0=0"


def bounded(lane: Lane, **options: Any) -> Group:
    """One that stops after the first five events of the stream, which are there."""
    lane.append({"0.0": 5})
    return Group.made(lane, end=END, **options)


def finish(*groups: Group) -> None:
    """They read and release all that they will ever read."""
    for group in groups:
        consume(group)


def test_a_stream_that_a_group_is_done_with_does_not_keep_it_from_its_others(lane: Lane) -> None:
    second = Lane.made(lane.database, retention="consumed")
    lane.append({"0.0": 5})
    second.append({"0.0": 5})
    ends = json.dumps({str(name): {"0.0": 5, "1.0": 0} for name in (lane.name, second.name)})
    group = Group.made(lane, second, end=ends)
    lane.append({"0.0": 5})
    other = Group.made(lane)
    reader = group.reader()
    reader.commit(reader.must_open(budget=5))
    assert group.cut(lane)["0.0"] == 5
    group.checkpoint()
    finish(other)
    assert decide(lane)["cut"] == {"0.0": 10, "1.0": 0}
    assert group.reader().must_open().events == 5


def test_who_has_read_up_to_its_end_can_become_a_subscriber_and_be_forked(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane, end=END, subscriber=False)
    lane.append({"0.0": 5})
    group.reader().read_all()
    lane.truncate("0.0=10, 1.0=0")
    update_reader_group(lane.database, group.name, subscriber=True, request_id=unique("u"))
    made = unique("fork")
    fork_reader_group(lane.database, group.name, made, request_id=made)
    assert Group(lane.database, made, (lane,)).reader().open() is None
    assert group.reader().open() is None  # now it stands at the head, behind its end
    made = unique("fork")
    fork_reader_group(lane.database, group.name, made, request_id=made)
    with raises("events_truncated 5 events"):
        reset_reader_group(
            lane.database, group.name, "start", allow_repeat=True, request_id=unique("reset")
        )


# Of the stream with ten events in 0.0 and four in 1.0: where each subscriber ends ("": nowhere) and
# what it has released; what goes, and who of them holds the rest.
TO_FIVE = ("0.0=5, 1.0=0", "0.0=5, 1.0=0")


@pytest.mark.parametrize(
    ("subscribers", "cut", "holding"),
    [
        # Who has released all up to its end leaves the rest to the others; who has not does not.
        ([TO_FIVE, ("", "0.0=10, 1.0=2")], {"0.0": 10, "1.0": 2}, [1]),
        ([("0.0=5, 1.0=0", "0.0=4, 1.0=0"), ("", "0.0=10, 1.0=4")], {"0.0": 4, "1.0": 0}, [0]),
        # If all have, what any of them has released goes.
        ([TO_FIVE], {"0.0": 5, "1.0": 0}, [0]),
        ([TO_FIVE, ("0.0=8, 1.0=0", "0.0=8, 1.0=0")], {"0.0": 8, "1.0": 0}, [0, 1]),
        (
            [("0.0=0, 1.0=0", "0.0=3, 1.0=0"), ("0.0=0, 1.0=0", "0.0=1, 1.0=4")],
            {"0.0": 3, "1.0": 4}, [0, 1],
        ),
    ],
)  # fmt: skip
def test_who_has_released_all_up_to_its_end_has_a_say_only_where_nobody_else_has(
    lane: Lane, subscribers: list[tuple[str, str]], cut: dict[str, int], holding: list[int]
) -> None:
    lane.append({"0.0": 10, "1.0": 4})
    groups = []
    for end, released in subscribers:
        groups.append(Group.made(lane, release="manual", **({"end": end} if end else {})))
        release(lane.database, groups[-1].name, released, request_id=unique("release"))
    report = decide(lane)
    assert report["cut"] == cut
    assert report["held_by"] == sorted(groups[i].name for i in holding)


def test_who_has_only_segments_without_events_before_its_end_has_finished(lane: Lane) -> None:
    lane.append({"0.0": 5})
    lane.scale("1.0")
    Group.made(lane, start="0.0=5, 1.0=0", end="0.0=5, 2.1=0, 3.1=0")
    other = Group.made(lane)
    lane.append({"0.0": 5, "2.1": 1})
    finish(other)
    assert decide(lane)["held_by"] == [other.name]
    assert lane.head() == lane.tail()


def test_a_truncation_by_hand_makes_retention_look_again(alone: Lane) -> None:
    alone.append({"0.0": 5})
    Group.made(alone, end=END)
    other = Group.made(alone)
    alone.append({"0.0": 5})
    finish(other)
    capture(alone.database)
    while retain(alone.database):
        pass
    alone.truncate("0.0=7, 1.0=0")
    while retain(alone.database):
        pass
    assert alone.head() == {"0.0": 10, "1.0": 0}


def test_who_has_read_up_to_its_end_does_not_time_out_and_loses_nothing(lane: Lane) -> None:
    group = bounded(lane, time_out=DAY)
    lane.append({"0.0": 5})
    group.reader().read_all()
    pass_time(lane, 2 * DAY)
    report = decide(lane)
    assert (report["timed_out"], report["held_by"]) == ([], [group.name])
    update_stream(lane.database, lane.name, {"retain_max_bytes": 10}, request_id=unique("update"))
    capture(lane.database)
    report = decide(lane)
    assert (report["rule"], report["lost"]) == ("max_bytes", {})
    assert report["cut"] == {"0.0": 10, "1.0": 0}
