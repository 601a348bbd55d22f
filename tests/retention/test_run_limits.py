"""A run of retention keeps and takes what the limits of a stream say."""

import pytest

from tests.world.groups import Group
from tests.world.retention import decide, pass_time
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.retention.capture import capture
from weir.retention.prune import prune


def test_a_maximum_age_takes_nothing_that_is_younger_though_nothing_was_captured_for_a_while(
    database: Database,
) -> None:
    lane = Lane.made(database, retain_max_age=10 * 86400, retention="consumed")
    slow = Group.made(lane)
    lane.append({"0.0": 1})
    capture(database)
    for day in range(1, 15):
        pass_time(lane, 86400 - 60)
        lane.append({"0.0": 1})
        if day == 6:
            lane.scale("1.0")
    capture(database)  # of 14 days
    report = decide(lane)
    assert (report["rule"], report["lost"]) == ("max_age", {slow.name: 4})
    assert lane.head() == {"0.0": 4, "1.0": 0}
    assert decide(lane)["cut"] is None


def test_a_stream_as_large_as_its_maximum_keeps_all_of_it(database: Database) -> None:
    lane = Lane.made(database, retain_max_bytes=120, retention="consumed")
    Group.made(lane)
    capture(lane.database)
    for events in (4, 8):
        lane.append({"0.0": events})
        capture(lane.database)
        assert decide(lane)["cut"] is None
    prune(lane.database, 0.0)
    assert decide(lane)["cut"] is None
    lane.append({"0.0": 1})
    capture(lane.database)
    assert decide(lane)["cut"] == {"0.0": 4, "1.0": 0}


@pytest.mark.parametrize("most", [100, 110, 120])
def test_a_subscriber_with_one_event_unread_keeps_it_where_the_limits_are_equal_or_close(
    database: Database, most: int
) -> None:
    lane = Lane.made(database, retain_min_bytes=100, retain_max_bytes=most, retention="consumed")
    group = Group.made(lane)
    lane.append({"0.0": 5, "1.0": 9})
    reader = group.reader()
    assert reader.read_all() == [("0.0", 0, 5), ("1.0", 0, 9)]
    lane.append({"1.0": 1})
    capture(database)
    lane.append({"0.0": 11})
    capture(database)
    reader.commit(reader.must_open(until={lane.stream_id: {"0.0": 16, "1.0": 9}}))
    assert group.checkpoint() is not None
    assert group.released() == {"0.0": 16, "1.0": 9}
    [dry] = lane.rows("SELECT rule, cut, lost FROM retention_dry_run(:n)", n=str(lane.name))
    assert dry._asdict() == {"rule": "min_bytes", "cut": {"0.0": 5, "1.0": 9}, "lost": {}}
    report = decide(lane)
    assert (report["rule"], report["lost"]) == ("min_bytes", {})
    assert lane.head() == {"0.0": 5, "1.0": 9}
