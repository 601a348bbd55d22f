"""Reader groups: where they begin, what protects them, and what may not be created."""

import pytest

from tests.controller.support import Lane, unique
from tests.raises import raises
from tests.reader_groups.support import Group
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.reader_groups.groups import create_reader_group, end_of_group, group_streams


def test_group_begins_at_the_head(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    lane.truncate("0.0=2, 1.0=0")
    group = Group.made(lane)
    assert group.cut() == {"0.0": 2, "1.0": 0}
    assert group.states() == {"0.0": ("unassigned", 2, None), "1.0": ("unassigned", 0, None)}


def test_group_begins_at_the_tail_of_now(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 3})
    group = Group.made(lane, start="tail")
    lane.append({"0.0": 1})
    assert group.cut() == {"0.0": 5, "1.0": 3}
    assert group.reader().read_all() == [("0.0", 5, 6)]


def test_group_that_begins_at_a_head_with_a_future_segment_waits_for_the_unread_one(
    lane: Lane,
) -> None:
    lane.append({"0.0": 5, "1.0": 3})
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 2})
    lane.truncate(f"1.0=1, {merged}=future")
    group = Group.made(lane)
    assert group.states() == {
        "1.0": ("unassigned", 1, None),
        merged: ("future", None, None),
    }
    assert group.reader().read_all() == [("1.0", 1, 3), (merged, 0, 2)]


def test_subscriber_is_protected_from_its_creation_on(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 3})
    assert Group.made(lane, start="tail").published() == {"0.0": 5, "1.0": 3}
    assert Group.made(lane, subscriber=False).published() is None


def test_group_reads_several_streams(lane: Lane) -> None:
    other = Lane.made(lane.database, segments=1)
    lane.append({"0.0": 5})
    other.append({"0.0": 7})
    group = Group.made(lane, other)
    assert sorted(group.reader().read_all()) == [("0.0", 0, 5), ("0.0", 0, 7)]
    streams = lane.database.transaction(lambda c: group_streams(c, group.name))
    assert streams == [(lane.stream_id, str(lane.name)), (other.stream_id, str(other.name))]


def test_the_same_request_returns_the_same_and_another_is_a_conflict(lane: Lane) -> None:
    name, request = unique("group"), unique("request")
    made = create_reader_group(lane.database, name, [lane.name], request_id=request)
    lane.append({"0.0": 1})
    assert made == create_reader_group(lane.database, name, [lane.name], request_id=request)
    with raises("request_reused"):
        create_reader_group(lane.database, name, [lane.name], start="tail", request_id=request)
    with raises(f"group_exists {name}"):
        create_reader_group(lane.database, name, [lane.name], request_id=unique("request"))


def test_a_stream_named_twice_is_read_once(lane: Lane) -> None:
    name = unique("group")
    create_reader_group(lane.database, name, [lane.name, lane.name], request_id=unique("r"))
    assert Group(lane.database, name, (lane,)).cut() == {"0.0": 0, "1.0": 0}


@pytest.mark.parametrize("name", ["", "Upper", "a b", "../x", "a'b", "x" * 64, "-a", "a\n"])
def test_bad_names_are_refused(lane: Lane, name: str) -> None:
    with raises("group_name_invalid"):
        create_reader_group(lane.database, name, [lane.name], request_id=unique("request"))


def test_what_is_wrong_with_the_arguments_is_said(shared_database: Database, lane: Lane) -> None:
    def create(**options: object) -> None:
        given = {"streams": [lane.name], "request_id": unique("request"), **options}
        create_reader_group(shared_database, unique("group"), **given)  # type: ignore[arg-type]

    with raises("position_invalid 'middle'"):
        create(start="middle")
    with raises("argument_invalid on_gap 'panic'"):
        create(on_gap="panic")
    with raises("group_without_streams"):
        create(streams=[])
    with raises("stream_not_found no/such"):
        create(streams=[lane.name, stream_name("no/such")])


def test_an_unknown_group_is_named(shared_database: Database, lane: Lane) -> None:
    group = Group(shared_database, "no-such-group", (lane,))
    with raises("group_not_found no-such-group"):
        group.reader()
    with raises("group_not_found no-such-group"):
        group.checkpoint("x")


def test_a_group_that_has_read_all_it_will_ever_have_says_so(lane: Lane) -> None:
    lane.append({"0.0": 5})
    bounded, endless = Group.made(lane, end="tail"), Group.made(lane)

    def said(group: Group) -> str:
        return group.database.transaction(lambda c: end_of_group(c, group.name))

    for group in (bounded, endless):
        assert said(group) == ""
        group.reader().read_all()
    end = f"is at its end: it has read {lane.name}, and nothing will follow."
    assert (said(bounded), said(endless)) == (f"reader group {bounded.name} {end}", "")
    lane.append({"1.0": 1})
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    assert said(endless) == ""
    endless.reader().read_all()
    assert said(endless) == f"reader group {endless.name} {end}"
    assert said(bounded) == f"reader group {bounded.name} {end}"
