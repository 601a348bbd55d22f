"""Which streams a run of retention looks at, and when it looks at them again."""

import pytest

from tests.world.groups import Group
from tests.world.retention import consume
from tests.world.streams import Lane, rows, run, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.retention.capture import capture
from weir.retention.run import retain


@pytest.fixture
def lane(alone: Lane) -> Lane:
    """Retention serves all streams of a database."""
    return alone


def test_a_sealed_stream_is_not_due_any_more(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    consume(group)
    assert group.released() == {"0.0": 3, "1.0": 0}
    Group.made(lane)
    assert rows(lane.database, "SELECT * FROM retention_queue") == []


def test_a_stream_of_which_nothing_has_changed_is_not_looked_at(lane: Lane) -> None:
    group = Group.made(lane)
    assert len(retain(lane.database)) == 1
    assert retain(lane.database) == []
    lane.append({"0.0": 3})
    capture(lane.database)
    assert [r["rule"] for r in retain(lane.database)] == ["nothing_consumed"]
    consume(group)
    assert [r["rule"] for r in retain(lane.database)] == ["consumed"]
    # Once more after a truncation, then not until something changes.
    assert [r["rule"] for r in retain(lane.database)] == ["nothing_consumed"]
    assert retain(lane.database) == []


def test_a_stream_is_looked_at_again_when_a_record_comes_of_age(database: Database) -> None:
    lane = Lane.made(database, retention="age", retain_min_age=600, retain_max_age=600)
    lane.append({"0.0": 3})
    capture(database)
    assert [r["rule"] for r in retain(database)] == ["too_little"]
    assert retain(database) == []
    [[due]] = rows(database, "SELECT due_at - clock_timestamp() FROM retention_queue")
    assert 590 < due.total_seconds() <= 600
    for table, column in (("stream_cut", "recorded_at"), ("retention_queue", "due_at")):
        run(database, f"UPDATE {table} SET {column} = {column} - interval '601 seconds'")
    [report] = retain(database)
    assert (report["rule"], report["cut"]) == ("max_age", {"0.0": 3, "1.0": 0})
    assert rows(database, "SELECT * FROM stream_cut") == []
