"""What was unread and kept over time: the numbers were true at each time."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.database.connection import Database
from weir.model.clock import clock_time, to_clock
from weir.pages import over_time
from weir.pages.over_time import kept_over_time, unread_over_time
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.capture import capture


def at(times: Sequence[datetime], values: Sequence[int], clock: int) -> int:
    """Return what a chart shows at a time."""
    shown = zip(times[:-1], values, strict=False)
    return [value for since, value in shown if since <= clock_time(clock)][-1]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show each change by itself."""
    monkeypatch.setattr(over_time, "width_of_bin", lambda begin, end: 1)


@pytest.mark.parametrize("case", range(cases(16, least=2)))
def test_unread_events_were_so_many_at_each_time(database: Database, case: int) -> None:
    random = random_for("lag", case)
    lanes = [Lane.made(database, 2), Lane.made(database, 1)]
    lanes[0].append({"0.0": 7})
    group = Group.made(*lanes)
    reader = group.reader()
    was = []
    for _ in range(15):
        what = random.random()
        lane = random.choice(lanes)
        if what < 0.5:
            lane.append({one: random.randint(1, 20) for one in lane.active()})
        elif what < 0.6:
            lane.scale(random.choice(lane.active()), parts=2)
        elif batch := reader.open(random.randint(1, 30)):
            reader.commit(batch)
        rows = group.rows(
            "SELECT stream, unread_events, time_clock(clock_timestamp()) AS clock "
            "FROM weir.lag WHERE reader_group = :name",
            name=group.name,
        )
        was += [(row.stream, row.clock, row.unread_events) for row in rows]
    charts = {
        one.stream: one for one in database.snapshot(lambda c: unread_over_time(c, group.name))
    }
    for stream, clock, unread in was:
        assert at(charts[stream].at, charts[stream].events, clock) == unread


def test_what_was_unread_before_a_reset_is_not_told(database: Database) -> None:
    lane = Lane.made(database, 2)
    lane.append({"0.0": 7})
    group = Group.made(lane)
    group.reader().read_all()
    lane.append({"0.0": 5})
    before = lane.value("SELECT clock_timestamp()")
    reset_reader_group(database, group.name, "tail", request_id=unique("reset"))
    lane.append({"1.0": 3})
    [chart] = database.snapshot(lambda c: unread_over_time(c, group.name))
    assert chart.at[0] > before
    assert (chart.events[0], chart.events[-1]) == (0, 3)


def test_what_is_kept_was_so_much_before_and_after_a_truncation(database: Database) -> None:
    lane = Lane.made(database, 2, retention="consumed")
    group = Group.made(lane, subscriber=True)
    [[begin]] = lane.rows("SELECT created_at FROM epoch WHERE stream_id = :s")
    kept = []

    def look() -> None:
        [row] = lane.rows(
            "SELECT bytes_retained AS bytes, time_clock(clock_timestamp()) AS clock "
            "FROM weir.streams WHERE stream_id = :s"
        )
        kept.append((row.clock, row.bytes))

    lane.append({"0.0": 10, "1.0": 20})
    look()
    reader = group.reader()
    reader.read_all()
    lane.truncate('{"0.0": 4, "1.0": 0}')
    look()
    lane.append({"0.0": 1})
    look()
    reader.read_all()
    group.checkpoint("read")
    capture(database)
    [[end]] = lane.rows("SELECT now_clock()")
    shown = database.snapshot(lambda c: kept_over_time(c, lane.name, begin, end))
    assert shown.next_time == 270
    for clock, amount in kept:
        assert at(shown.at, shown.kept, clock) == amount
    assert [at(shown.at, shown.truncated, clock) for clock, _ in kept] == [0, 40, 40]
    assert to_clock(shown.at[-1]) == end


def test_times_without_history_are_refused(database: Database) -> None:
    group = Group.made(Lane.made(database, 1))
    with raises("time_invalid nothing"):
        database.snapshot(lambda c: unread_over_time(c, group.name, until=1))
