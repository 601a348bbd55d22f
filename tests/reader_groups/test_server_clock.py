"""Postgres's clock is set back and forward by an hour: the order of a stream does not notice."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import psycopg2
import pytest

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.reader_groups.completeness_model import Stream, World, append
from tests.world import questions as queries
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.model.clock import to_clock
from weir.model.event_time import as_datetime
from weir.operations.examination import troubles

HOUR = 3_600_000_000
SetClock = Callable[[int], None]


@pytest.fixture
def set_clock(test_database: TestDatabase) -> Iterator[SetClock]:
    """Sets the clock of the test's own database to so many hours from the machine's."""
    owner = psycopg2.connect(test_database.owner_dsn)
    owner.autocommit = True

    def put(hours: int) -> None:
        owner.cursor().execute(
            f"""CREATE OR REPLACE FUNCTION weir_internal.now_clock() RETURNS bigint
            LANGUAGE sql VOLATILE PARALLEL SAFE RETURN weir_internal.time_clock(clock_timestamp())
                + {hours} * CAST(3600000000 AS bigint)"""
        )

    yield put
    owner.close()


def clocks_of(lane: Lane) -> dict[tuple[int, int], int]:
    """The clock of every event, by segment and offset."""
    entries = lane.rows(
        "SELECT segment_id, start_offset, events, clock FROM time_index WHERE stream_id = :s"
    )
    return {
        (segment, start + i): clock
        for segment, start, events, clock in entries
        for i in range(events)
    }


def now(lane: Lane) -> datetime:
    at: datetime = lane.value("SELECT clock_time(now_clock())")
    return at


@pytest.mark.parametrize("case", range(cases(10)))
def test_commits_scales_closed_times_and_batches_keep_their_order(
    database: Database, set_clock: SetClock, case: int
) -> None:
    random = random_for(case)
    lane, other = Lane.made(database), Lane.made(database)
    group = Group.made(lane)
    reader = group.reader()
    closed: list[tuple[datetime, queries.Cut]] = []
    issued: list[int] = []
    read: list[list[int]] = []

    def one_more_batch() -> bool:
        if (batch := reader.open(random.randint(1, 6))) is None:
            return False
        known = clocks_of(lane)
        read.append(
            sorted(known[b.segment_id, o] for b in batch.bounds for o in range(b.start, b.end))
        )
        reader.commit(batch)
        return True

    for _ in range(15):
        set_clock(random.choice([-1, 0, 1]))
        match random.randrange(4):
            case 0 | 1:
                issued.append(lane.append({random.choice(lane.active()): 3}).clock)
                other.append({"0.0": 1})
            case 2:
                lane.scale(random.choice(lane.active()))
                issued.append(lane.epochs()[-1].created_at)
            case 3:
                at = now(lane)
                closed.append((at, queries.closed_cut_at(database, lane.name, at)))
        if random.random() < 0.5:
            one_more_batch()
    while one_more_batch():
        pass
    assert all(a < b for a, b in pairwise(issued)), "clocks and epoch times increase strictly"
    for at, cut in closed:
        if at <= now(lane):
            assert queries.closed_cut_at(database, lane.name, at) == cut
        found = database.transaction(partial(queries.stream_cut_at, stream=lane.name, at=at))
        assert found == cut, "a closed time keeps its cut"
    assert all(a[-1] <= b[0] for a, b in pairwise(read)), "nothing is read before what is older"
    assert sorted(clock for batch in read for clock in batch) == sorted(clocks_of(lane).values()), (
        "each event is read once"
    )


@pytest.mark.parametrize("case", range(cases(10)))
def test_completeness_does_not_notice_it(
    database: Database, set_clock: SetClock, case: int
) -> None:
    random = random_for(case)
    world = World.made(database, random)
    for _ in range(15):
        set_clock(random.choice([-1, 0, 1]))
        world.step()


@pytest.mark.parametrize("hours", [-24 * 366, -1])
def test_what_is_later_than_a_clock_that_was_set_back_is_named_and_reading_goes_on(
    database: Database, set_clock: SetClock, hours: int
) -> None:
    lane = Lane.made(database)
    group = Group.made(lane)
    first = lane.append({"0.0": 3})
    cuts = "INSERT INTO stream_cut SELECT :s, :n, clock_timestamp() + interval '1 h', 1, head, 0, 0"
    assert lane.rows("SELECT * FROM weir.clocks_ahead") == []
    set_clock(hours)
    [found] = lane.rows("SELECT what, name, ahead FROM weir.clocks_ahead")
    assert (found.what, found.name) == ("stream", str(lane.name))
    assert abs(found.ahead + timedelta(hours=hours)) < timedelta(minutes=2)
    [check] = troubles(database)
    assert (check.what, check.ok) == ("clock ahead", None)
    assert f"stream {lane.name}" in check.found
    assert lane.append({"0.0": 2}).clock == first.clock + 1, "clocks increase all the same"
    reader, read = group.reader(), 0
    while batch := reader.open(2):
        read += batch.events
        reader.commit(batch)
    assert read == 5, "each event once"
    set_clock(0)
    run(database, f"{cuts}, NULL FROM stream WHERE stream_id = :s", s=lane.stream_id,
        n=str(lane.name))  # fmt: skip
    run(database, "UPDATE stream SET retained_at = clock_timestamp() + interval '1 h'")
    run(database, "INSERT INTO watch VALUES ('a/b', 'airflow', 'events', clock_timestamp(), "
        "clock_timestamp() + interval '1 h')")  # fmt: skip
    lane.opened()
    run(database, "UPDATE transaction SET opened_at = opened_at + interval '1 h', "
        "lease_until = lease_until + interval '1 h' WHERE state = 'open'")  # fmt: skip
    lane.append({"0.0": 1})
    assert reader.open(1)
    run(database, "UPDATE reader SET lease_until = lease_until + interval '1 h', "
        "joined_at = joined_at + interval '1 h'")  # fmt: skip
    named = lane.rows("SELECT what FROM weir.clocks_ahead ORDER BY what")
    assert [one.what for one in named] == ["announcement", "append", "cut", "reader", "retention"]


def test_a_clock_that_was_ahead_does_not_say_what_may_be_stated(
    database: Database, set_clock: SetClock
) -> None:
    stream = Stream.made(database)
    now = to_clock(datetime.now(UTC))
    set_clock(48)
    append(stream, [1])  # the last clock of the stream is ahead from now on
    set_clock(0)
    with raises("argument_invalid later than now"):
        append(stream, [2], as_datetime(now + 24 * HOUR))
    append(stream, [2], as_datetime(now))
    assert stream.lane.value("SELECT complete_until FROM stream WHERE stream_id = :s") == now
    set_clock(-1)
    with raises("argument_invalid later than now"):
        append(stream, [3], as_datetime(now))
    assert append(stream, [3]).events == 1, "events go in without a statement"
