"""Groups begin and end at event times: at commits, so that no event of these times is left out."""

from random import Random

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.reader_groups.completeness_model import (
    Event,
    Stream,
    World,
    append,
)
from tests.world.groups import Group, events_of
from tests.world.streams import Lane, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Truncated
from weir.model.event_time import say_time
from weir.reader_groups.groups.lifecycle import create_reader_group, fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.manual_truncation import truncate_before

Unknown = dict[int, int]  # by stream: the clock up to which no event times are known


def at(time: int) -> str:
    return f"event time {say_time(time)}"


def within(stream: Stream, unknown: Unknown, since: int, until: int | None) -> set[Event]:
    """The events of a stream that a group from one event time to another reads: those of all
    commits from the first that may hold a time since then to the last that may hold one until
    then."""
    commits: dict[int, list[int]] = {clock: [] for clock in stream.clocks.values()}
    for event, clock in stream.clocks.items():
        if (time := stream.times[event]) is not None:
            commits[clock].append(time)

    def known(clock: int) -> list[int]:
        return commits[clock] if clock > unknown.get(stream.lane.stream_id, 0) else []

    first = [c for c in commits if not known(c) or max(known(c)) >= since]
    last = [c for c in commits if until is None or not known(c) or min(known(c)) < until]
    if not first or not last:
        return set()
    return {e for e, c in stream.clocks.items() if min(first) <= c <= max(last)}


def change_event_time(world: World, unknown: Unknown) -> None:
    """Let what is recorded of a stream be of another meaning than what follows."""
    stream = world.random.choice(world.streams)
    for expression in ("other", "at"):
        update_stream(
            stream.lane.database, stream.lane.name, {"event_time": expression},
            request_id=unique("update"),
        )  # fmt: skip
    unknown[stream.lane.stream_id] = max(stream.clocks.values(), default=0)
    stream.complete_until = None
    stream.stated.clear()


def read(group: Group) -> set[Event]:
    """Read a group to its end or to the tail."""
    reader, found = group.reader(), set()
    while (batch := reader.open()) is not None:
        found |= events_of(batch)
        reader.commit(batch)
    return found


@pytest.mark.parametrize("case", range(cases(12)))
def test_a_group_reads_whole_commits_and_no_event_of_its_times_is_left_out(
    shared_database: Database, case: int
) -> None:
    world = World.made(shared_database, random_for(case))
    random, unknown = world.random, dict[int, int]()
    for _ in range(8):
        world.now += random.randint(0, 30)
        random.choice([world.append, world.append, world.roll])()
        if random.random() < 0.07:
            change_event_time(world, unknown)
        if world.may_lose and random.random() < 0.1:
            world.truncate()
    for _ in range(6):
        _check_one(world, random, unknown)


def _check_one(world: World, random: Random, unknown: Unknown) -> None:
    since = random.randint(999_950, world.now + 30)
    until = random.choice([None, since + random.randint(0, 60)])
    expected = {e for s in world.streams for e in within(s, unknown, since, until)}
    asked = {
        event
        for stream in world.streams
        for event, time in stream.times.items()
        if time is not None and since <= time and (until is None or time < until)
        and stream.clocks[event] > unknown.get(stream.lane.stream_id, 0)
    }  # fmt: skip
    assert asked <= expected
    lanes = [stream.lane for stream in world.streams]
    ends = {} if until is None else {"end": at(until)}
    try:
        group = Group.made(*lanes, start=at(since), subscriber=False, **ends)
    except Truncated:
        assert expected & world.truncated
        return
    assert not expected & world.truncated
    assert read(group) == expected


HOUR = 3_600_000_000


def create(*lanes: Lane, start: str, end: str = "") -> tuple[Group, list[str]]:
    """Return a new group, and what is said of how much lies between event times."""
    name = unique("group")
    made = create_reader_group(
        lanes[0].database, name, [lane.name for lane in lanes], start=start, end=end,
        subscriber=False, request_id=unique("create"),
    )  # fmt: skip
    return Group(lanes[0].database, name, lanes), made["reads"]


def test_an_event_time_may_be_written_wherever_a_place_is(shared_database: Database) -> None:
    stream = Stream.made(shared_database)
    lane = stream.lane
    append(stream, [HOUR, 2 * HOUR])
    lane.scale("0.0")
    later = lane.active()[-1]
    append(stream, [3 * HOUR, 5 * HOUR], segment=later)
    append(stream, [9 * HOUR], segment=later)
    group, said = create(lane, start=at(3 * HOUR), end="event  time 1970-01-01 06:00")
    assert group.reader().read_all() == [(later, 0, 2)]
    assert said == [
        f"2 events of stream {lane.name} lie there, in whole commits, so some may have other "
        "event times; let the function leave those out: events.where(...)"
    ]
    empty, said = create(lane, start=at(6 * HOUR), end=at(7 * HOUR))
    assert (empty.reader().read_all(), said) == (
        [], [f"no event of stream {lane.name} lies there by its event time"],
    )  # fmt: skip
    assert create(lane, start=at(99 * HOUR))[0].reader().read_all() == [], "times may be to come"
    assert create(lane, start="head", end=at(0))[0].reader().read_all() == []
    assert create(lane, start="head")[1] == []
    reset = reset_reader_group(
        shared_database, group.name, at(5 * HOUR), allow_repeat=True, request_id=unique("r")
    )
    assert reset["reads"][0].startswith("2 events")
    forked = fork_reader_group(
        shared_database, group.name, unique("f"), at=at(4 * HOUR), request_id=unique("f")
    )
    assert forked["reads"][0].startswith("2 events")
    with raises("position_invalid start"):
        create(lane, start=at(9 * HOUR), end=at(3 * HOUR))

    other = Stream.made(shared_database)
    append(other, [HOUR])
    append(other, [4 * HOUR])
    updated = update_reader_group(
        shared_database, group.name, streams=[lane.name, other.lane.name], start=at(2 * HOUR),
        request_id=unique("u"),
    )  # fmt: skip
    assert updated["reads"][0].startswith(f"1 event of stream {other.lane.name}")
    assert group.cut(other.lane) == {"0.0": 1, "1.0": 0}
    truncate_before(lane.database, lane.name, at(3 * HOUR), dry_run=False, request_id=unique("t"))
    assert create(lane, start=at(3 * HOUR))[0].reader().read_all() == [(later, 0, 3)]
    with raises("events_truncated 2 events by hand head"):
        create(lane, start=at(2 * HOUR))


def test_event_times_that_are_not_known_may_be_any(shared_database: Database) -> None:
    lane = Lane.made(shared_database)
    lane.append({"0.0": 2})
    with raises(f"argument_invalid 1970-01-01T03:00:00Z {lane.name}"):
        create(lane, start=at(3 * HOUR))
    update_stream(shared_database, lane.name, {"event_time": "at"}, request_id=unique("u"))
    stream = Stream(lane)
    append(stream, [HOUR])
    append(stream, [5 * HOUR])
    assert create(lane, start=at(3 * HOUR))[0].reader().read_all() == [("0.0", 0, 4)]
    end = create(lane, start="head", end=at(HOUR))[0]
    assert end.reader().read_all() == [("0.0", 0, 2)]
    with raises("time_invalid 'soon'"):
        create(lane, start="event time soon")
    with raises("position_invalid 'event'"):
        create(lane, start="event")
