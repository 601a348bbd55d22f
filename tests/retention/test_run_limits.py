"""A run of retention keeps and takes what the limits of a stream say."""

from tests.world.groups import Group
from tests.world.retention import decide, pass_time
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.retention.capture import capture


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
