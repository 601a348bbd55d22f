"""Times as addresses: a cut at a time stays what it was."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.raises import raises
from tests.world import questions as queries
from tests.world.streams import Lane, staged, while_held
from weir.controller.commit import commit_in
from weir.controller.locks import lock_streams
from weir.controller.times import parse_time


def now(lane: Lane) -> datetime:
    at: datetime = lane.value("SELECT clock_timestamp()")
    return at


def test_no_commit_gets_a_clock_before_a_time_that_was_closed(lane: Lane) -> None:
    attempt = lane.opened()
    at = now(lane)

    def hold(connection: Connection) -> Any:
        done = commit_in(
            connection, lock_streams(connection, ids=[lane.stream_id]),
            [staged(attempt, {"0.0": 3})],
        )  # fmt: skip
        return done, connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()

    # It has its clock and is not visible yet when the later time is asked for.
    (_, later), closed = while_held(
        lane.database, hold, lambda: queries.closed_cut_at(lane.database, lane.name, at)
    )
    assert closed == {"0.0": 0, "1.0": 0}
    assert queries.closed_cut_at(lane.database, lane.name, later) == {"0.0": 3, "1.0": 0}
    done = lane.append({"0.0": 1})
    assert done.clock > lane.value("SELECT time_clock(:at)", at=later)


def count(lane: Lane, since: datetime | None = None, until: datetime | None = None) -> int:
    return queries.count_between(lane.database, lane.name, since, until)


def test_events_between_two_times_are_counted_as_far_as_they_can_be_read(lane: Lane) -> None:
    times = [now(lane)]
    for counts in ({"0.0": 3}, {"0.0": 2, "1.0": 4}, {"1.0": 5}):
        lane.append(counts)
        times.append(now(lane))
    lane.scale("0.0")
    lane.append({"2.1": 7})
    assert [count(lane, a, b) for a, b in pairwise(times)] == [3, 6, 5]
    assert count(lane) == 21
    assert count(lane, until=times[2]) == 9
    assert count(lane, since=times[2]) == 12
    assert count(lane, times[1], times[1]) == 0
    lane.truncate("0.0=4, 1.0=1")
    assert [count(lane, a, b) for a, b in pairwise(times)] == [0, 4, 5]
    assert count(lane) == 16


def test_times_in_the_wrong_order_or_to_come_are_not_counted_between(lane: Lane) -> None:
    at = now(lane)
    with raises("time_invalid earlier"):
        count(lane, at, at - timedelta(seconds=1))
    with raises("time_in_future"):
        count(lane, at, at + timedelta(hours=1))
    for call in ("closed_cut_at(:n, 'infinity')", "count_between(:n, 'infinity')"):
        with raises("time_in_future"):
            lane.value(f"SELECT {call}", n=str(lane.name))
    with raises("argument_missing"):
        lane.value("SELECT closed_cut_at(:n, NULL)", n=str(lane.name))
    assert lane.value("SELECT count_between(:n, '-infinity', '-infinity')", n=str(lane.name)) == 0


def test_a_time_before_the_last_commit_is_closed_without_a_lock(lane: Lane) -> None:
    at = now(lane)
    lane.append({"0.0": 3})

    def hold(connection: Connection) -> int:
        lock_streams(connection, ids=[lane.stream_id])
        return count(lane, until=at)  # in another session, which would wait for ever

    assert lane.database.transaction(hold) == 0
    assert lane.database.snapshot(
        lambda c: c.execute(text("SELECT closed_cut_at(:n, :at)"), {"n": str(lane.name), "at": at})
    ).scalar_one() == {"0.0": 0, "1.0": 0}
    with raises("time_invalid transaction"):
        lane.database.snapshot(
            lambda c: c.execute(
                text("SELECT count_between(:n, NULL, :at)"), {"n": str(lane.name), "at": now(lane)}
            )
        )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2013-06-01 09:00", "2013-06-01T09:00:00+00:00"),
        ("2013-06-01T09:00:00Z", "2013-06-01T09:00:00+00:00"),
        (" 2013-06-01 09:00 UTC ", "2013-06-01T09:00:00+00:00"),
        ("2013-06-01 09:00-04:00", "2013-06-01T13:00:00+00:00"),
        ("2013-06-01", "2013-06-01T00:00:00+00:00"),
        (date(2013, 6, 1), "2013-06-01T00:00:00+00:00"),
        (datetime(2013, 6, 1, 9), "2013-06-01T09:00:00+00:00"),
    ],
)
def test_a_time_without_an_offset_is_in_utc(written: Any, meant: str) -> None:
    assert parse_time(written).astimezone(UTC).isoformat() == meant


@pytest.mark.parametrize("written", ["", "yesterday", "2013-13-01", "2013-06-01 25:00", "9:00", 7])
def test_what_is_no_time_is_refused_in_one_sentence(written: Any) -> None:
    with raises(f"time_invalid {written!r}"):
        parse_time(written)
