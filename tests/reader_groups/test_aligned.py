"""Aligned groups: a batch holds, of all streams, everything up to one moment, and nothing after."""

from functools import partial
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.chance import cases, random_for
from tests.crash.jobs import wait_for
from tests.raises import raises
from tests.world.groups import ALL, Group, Reader, events_of
from tests.world.streams import Lane, at_once, rows, run, staged, waiting_for_a_lock
from weir.controller.commit import commit_in
from weir.controller.locks import lock_streams
from weir.database.connection import Database
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.alignment import end_of_run
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.group_streams import group_tails

Run = dict[str, Any]


@pytest.fixture
def lanes(shared_database: Database) -> tuple[Lane, Lane]:
    """Two streams of two segments each."""
    return Lane.made(shared_database), Lane.made(shared_database)


def start(group: Group) -> Run:
    """What a run knows from its start on: how far it reads."""
    until, closed = group.database.transaction(lambda c: end_of_run(c, group.name))
    return {"until": until, "closed": closed}


def clock(lane: Lane) -> int:
    return int(lane.value("SELECT last_clock FROM stream WHERE stream_id = :s"))


def clock_of_commit(lane: Lane) -> int:
    return int(lane.value("SELECT max(clock) FROM time_index WHERE stream_id = :s"))


def events_until(lane: Lane, bound: int) -> set[tuple[int, int, int]]:
    """By stream id, segment id and offset, what is committed up to a clock."""
    found = lane.rows(
        "SELECT segment_id, start_offset, events FROM time_index WHERE stream_id = :s "
        "AND clock <= :bound",
        bound=bound,
    )
    return {(lane.stream_id, s, first + i) for s, first, events in found for i in range(events)}


def next_one(reader: Reader, run_: Run, budget: int = ALL) -> Batch | None:
    return reader.open(budget, **run_)


def must_open(reader: Reader, run_: Run, budget: int = ALL) -> Batch:
    batch = next_one(reader, run_, budget)
    assert batch is not None
    return batch


def test_a_batch_ends_in_all_streams_at_the_same_moment(lanes: tuple[Lane, Lane]) -> None:
    one, other = lanes
    group = Group.made(*lanes, aligned=True)
    one.append({"0.0": 3})
    other.append({"0.0": 5, "1.0": 1})
    second = clock(other)
    one.append({"1.0": 4})
    reader, run_ = group.reader(), start(group)
    first = must_open(reader, run_, 12)
    assert first.up_to == second
    assert events_of(first) == events_until(one, second) | events_until(other, second)
    assert first.events == 9
    reader.commit(first)
    last = must_open(reader, run_)
    assert last.up_to == run_["closed"]
    reader.commit(last)
    assert next_one(reader, run_) is None
    [[shown]] = group.rows(
        "SELECT time_clock(up_to) FROM weir.batches WHERE reader_group = :n AND batch_id = 1",
        n=group.name,
    )
    assert shown == second


def test_an_idle_stream_holds_nothing_back(lanes: tuple[Lane, Lane]) -> None:
    busy, idle = lanes
    idle.append({"0.0": 1})
    group = Group.made(*lanes, aligned=True, start="tail")
    before = clock(idle)
    busy.append({"0.0": 3})
    reader, run_ = group.reader(), start(group)
    batch = must_open(reader, run_)
    assert batch.up_to == run_["closed"] > clock_of_commit(busy)
    assert clock(idle) == run_["closed"] > before, "nothing can come before it any more"
    idle.append({"0.0": 1})
    assert clock(idle) > run_["closed"]


def test_whoever_takes_over_gets_the_same_moment_and_a_half_that_of_the_whole(
    lanes: tuple[Lane, Lane],
) -> None:
    group = Group.made(*lanes, aligned=True)
    lanes[0].append({"0.0": 4})
    reader, run_ = group.reader("a"), start(group)
    batch = must_open(reader, run_)
    group.lapse("a")
    lanes[1].append({"0.0": 9})
    heir = group.reader("b")
    taken = must_open(heir, start(group))
    assert (taken.bounds, taken.up_to) == (batch.bounds, batch.up_to)
    split_batch(group.database, taken, "failed")
    half = must_open(heir, start(group))
    assert (half.events, half.up_to) == (2, batch.up_to)


def test_one_reader_reads_at_a_time_and_the_others_stand_by(lanes: tuple[Lane, Lane]) -> None:
    group = Group.made(*lanes, aligned=True)
    for lane in lanes:
        lane.append({"0.0": 2, "1.0": 2})
    a, b, run_ = group.reader("a"), group.reader("b"), start(group)
    batch = must_open(a, run_, 4)
    assert next_one(b, run_) is None
    [row] = rows(
        group.database, "SELECT * FROM weir.waiting_readers WHERE reader_group = :g", g=group.name
    )
    assert (row.reader_id, row.reason, row.waits_for, row.batch_id) == ("b", "aligned", "a", 1)
    a.commit(batch)
    last = must_open(b, run_)
    assert last.events == 4
    assert len(group.owned("b", lanes[0])) == len(group.owned("b", lanes[1])) == 2


def test_a_stream_that_joins_the_group_during_a_run_is_not_read_before_it_is_closed(
    lanes: tuple[Lane, Lane],
) -> None:
    group = Group.made(lanes[0], aligned=True)
    lanes[0].append({"0.0": 1})
    reader, run_ = group.reader(), start(group)
    group.update(streams=[lane.name for lane in lanes])
    with raises("group_changed"):
        next_one(reader, run_)
    reader = group.reader()
    must_open(reader, start(group))


def test_a_group_that_becomes_aligned_reads_what_is_left_to_one_moment(
    lanes: tuple[Lane, Lane],
) -> None:
    one, other = lanes
    group = Group.made(*lanes)
    one.append({"0.0": [2, 2], "1.0": 3})
    other.append({"0.0": 2})
    reader = group.reader()
    reader.commit(reader.must_open(2))
    run_ = start(group)
    assert run_["closed"] is None
    group.update(aligned=True)
    with raises("group_changed"):
        next_one(reader, run_)
    run_ = start(group)
    batch = must_open(reader, run_, 1)
    assert (batch.events, batch.up_to) == (5, clock_of_commit(one))


def test_streams_of_which_one_is_ahead_of_the_time_are_closed_at_its_clock(
    lanes: tuple[Lane, Lane],
) -> None:
    # As after the server's clock was set back by an hour.
    one, other = lanes
    one.append({"0.0": 1})
    run(
        one.database,
        "UPDATE stream SET last_clock = last_clock + 3600000000 WHERE stream_id = :s",
        s=one.stream_id,
    )
    one.append({"0.0": 1})
    group = Group.made(*lanes, aligned=True)
    run_ = start(group)
    assert run_["closed"] == clock(one) == clock(other)
    batch = must_open(group.reader(), run_)
    assert batch.events == 2
    other.append({"0.0": 1})
    assert clock(other) > run_["closed"]


def in_flight(lanes: tuple[Lane, Lane], group: Group) -> tuple[Batch, set[tuple[int, int, int]]]:
    """An aligned batch that was opened while another connection commits to one of its streams; and
    all that is committed up to its bound."""
    one, other = lanes
    other.append({"0.0": 1})
    attempt = one.opened()
    made = staged(attempt, {"0.0": 7})

    begun, opened = Event(), Event()

    def committing(connection: Connection) -> None:
        commit_in(connection, lock_streams(connection, ids=[one.stream_id]), [made])
        begun.set()
        wait_for("the other", lambda: opened.is_set() or waiting_for_a_lock(group.database))

    def opening() -> Batch | None:
        assert begun.wait(timeout=60)
        try:
            return next_one(group.reader(), start(group))
        finally:
            opened.set()

    done = at_once(partial(group.database.transaction, committing), opening)
    batch = done[1]
    assert isinstance(batch, Batch), done
    assert batch.up_to is not None
    return batch, events_until(one, batch.up_to) | events_until(other, batch.up_to)


def test_a_commit_in_flight_is_in_the_batch_or_after_its_bound(lanes: tuple[Lane, Lane]) -> None:
    batch, committed = in_flight(lanes, Group.made(*lanes, aligned=True))
    assert events_of(batch) == committed
    assert batch.events == 8


def test_without_closing_a_commit_in_flight_is_missed_below_the_bound(
    lanes: tuple[Lane, Lane], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The check of the test above detects a plan that waits for no commit in flight.
    group = Group.made(*lanes, aligned=True)

    def not_closed(connection: Connection, name: str) -> tuple[dict[int, Any], int]:
        bound = connection.execute(text("SELECT now_clock()")).scalar_one()
        return group_tails(connection, name), int(bound)

    monkeypatch.setattr("tests.reader_groups.test_aligned.end_of_run", not_closed)
    batch, committed = in_flight(lanes, group)
    assert events_of(batch) < committed


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(5)))
def test_batch_after_batch_leaves_nothing_below_its_bound(
    shared_database: Database, case: int
) -> None:
    random = random_for(case)
    lanes = [Lane.made(shared_database) for _ in range(3)]
    group = Group.made(*lanes, aligned=True)
    readers = {name: group.reader(name) for name in "ab"}
    read: set[tuple[int, int, int]] = set()
    for _ in range(12):
        for lane in lanes:
            if random.random() < 0.3:
                lane.scale(random.choice(lane.active()), parts=random.choice([1, 2]))
            if random.random() < 0.6:
                lane.append({name: random.randint(1, 5) for name in lane.active()})
        run_ = start(group)
        while batch := next_one(
            reader := readers[random.choice("ab")], run_, random.choice([1, 9, ALL])
        ):
            assert batch.up_to is not None
            assert not events_of(batch) & read
            read |= events_of(batch)
            committed = partial(events_until, bound=batch.up_to)
            assert read == set().union(*map(committed, lanes))
            reader.commit(batch)
            group.check_positions()
            if random.random() < 0.3:
                break
