"""Times as addresses: a cut at a time stays what it was."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection

from tests.controller.support import Lane, run, staged, while_held
from tests.raises import raises
from weir.controller import queries
from weir.controller.commit import commit_in
from weir.controller.locks import lock_streams


def now(lane: Lane) -> datetime:
    at: datetime = lane.value("SELECT clock_timestamp()")
    return at


def cut_at(lane: Lane, at: datetime) -> queries.Cut:
    return lane.database.transaction(lambda c: queries.stream_cut_at(c, lane.name, at))


def test_the_cut_at_a_time_is_the_tail_of_then(lane: Lane) -> None:
    times = [now(lane)]
    tails = [lane.tail()]
    for step in (
        partial(lane.append, {"0.0": 3}),
        partial(lane.append, {"1.0": 4}),
        partial(lane.scale, "0.0"),
        partial(lane.append, {"2.1": 5}),
    ):
        step()
        times.append(now(lane))
        tails.append(lane.tail())
    assert [cut_at(lane, at) for at in times] == tails
    lane.truncate("0.0=2, 1.0=1")
    assert cut_at(lane, times[0]) == {"0.0": 2, "1.0": 1}, "what is before the head is gone"
    assert cut_at(lane, times[-1]) == tails[-1]


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


def test_a_time_that_has_not_come_is_refused(lane: Lane) -> None:
    later = now(lane) + timedelta(hours=1)
    with raises("time_in_future"):
        queries.closed_cut_at(lane.database, lane.name, later)


def test_clocks_and_epoch_times_increase_strictly_also_while_the_servers_clock_is_behind(
    lane: Lane,
) -> None:
    run(
        lane.database,
        "UPDATE stream SET last_clock = last_clock + 3600000000 WHERE stream_id = :s",
        s=lane.stream_id,
    )
    moments = [lane.value("SELECT last_clock FROM stream WHERE stream_id = :s")]
    for _ in range(3):
        moments.append(lane.append({lane.active()[0]: 1}).clock)
        lane.scale(lane.active()[0])
        moments.append(lane.epochs()[-1].created_at)
    begun = lane.active()[0]
    late = lane.opened()
    lane.scale(begun)
    rolled = lane.commit(late, {begun: 1})
    *_, scaled, before, after = (epoch.created_at for epoch in lane.epochs())
    moments += [scaled, before, rolled.clock, after, lane.append({lane.active()[0]: 1}).clock]
    assert moments == sorted(set(moments))
