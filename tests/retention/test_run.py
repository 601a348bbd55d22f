"""A run of retention truncates what was released, and records what it decides."""

import pytest

from tests.world.groups import Group
from tests.world.retention import consume, decide
from tests.world.streams import Lane, rows, run
from weir.retention.run import retain


def decisions(lane: Lane) -> list[str]:
    found = lane.rows(
        "SELECT rule FROM retention_decision WHERE stream_id = :s ORDER BY decided_at"
    )
    return [row.rule for row in found]


@pytest.fixture
def lane(alone: Lane) -> Lane:
    """Retention serves all streams of a database."""
    return alone


def test_the_decision_that_nothing_can_be_done_is_recorded_when_its_reason_changes(
    lane: Lane,
) -> None:
    assert decide(lane)["rule"] == "no_rule"
    decide(lane)
    assert decisions(lane) == ["no_rule"]
    first = Group.made(lane)
    lane.append({"0.0": 3})
    decide(lane)
    decide(lane)
    assert decisions(lane) == ["no_rule", "nothing_consumed"]
    Group.made(lane)  # now two hold it
    decide(lane)
    assert decisions(lane) == ["no_rule", "nothing_consumed", "nothing_consumed"]
    assert first.name


@pytest.mark.parametrize("changed", ["bound", "timed_out", "held_by", "reason"])
def test_each_part_of_a_decision_is_enough_to_record_it_anew(lane: Lane, changed: str) -> None:
    Group.made(lane)
    lane.append({"0.0": 3})
    decide(lane)
    other = {"bound": """{"0.0": 1}""", "timed_out": ["gone"], "held_by": ["gone"], "reason": "-"}
    run(
        lane.database,
        f"UPDATE retention_decision SET {changed} = :other WHERE stream_id = :s",
        other=other[changed], s=lane.stream_id,
    )  # fmt: skip
    decide(lane)
    decide(lane)
    assert decisions(lane) == ["nothing_consumed", "nothing_consumed"]


def test_a_truncation_is_recorded_with_what_it_freed(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": [3, 4], "1.0": 5})
    consume(group)
    report = decide(lane)
    assert (report["rule"], report["events"], report["bytes"], report["files"]) == (
        "consumed", 12, 120, 3,
    )  # fmt: skip
    [row] = lane.rows("SELECT * FROM retention_decision WHERE stream_id = :s")
    assert (row.head, row.cut, row.held_by) == (
        {"0.0": 0, "1.0": 0}, {"0.0": 7, "1.0": 5}, [group.name],
    )  # fmt: skip
    assert (row.events, row.bytes) == (12, 120)
    assert decide(lane)["rule"] == "nothing_consumed"


def test_a_subscriber_in_the_middle_of_a_merge_releases_what_lies_before_it(lane: Lane) -> None:
    lane.append({"0.0": 4, "1.0": 4})
    group = Group.made(lane)
    a, b = group.reader("a"), group.reader("b")
    first, _ = a.must_open(), b.must_open()
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 5})
    a.commit(first)
    assert a.open() is None
    group.checkpoint()
    assert decide(lane)["cut"] == {"1.0": 0, merged: "future"}
    assert lane.head() == {"1.0": 0, merged: "future"}
    assert [f.events for f in lane.files()] == [4, 5]


def test_a_group_that_is_no_subscriber_holds_nothing_back_and_sees_what_it_lost(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    subscriber, other = Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": 3, "1.0": 4})
    consume(subscriber)
    retain(lane.database)
    assert f"{other.name}, which is no subscriber, loses 7 unread events" in caplog.text
    ((unread, lost),) = rows(
        lane.database,
        "SELECT unread_events, lost_events FROM lag WHERE reader_group = :g",
        g=other.name,
    )
    assert (unread, lost) == (0, 7)
