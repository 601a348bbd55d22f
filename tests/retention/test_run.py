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
