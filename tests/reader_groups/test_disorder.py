"""How far readers are from each other: max_ahead limits it, and every commit measures it."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.chance import random_for
from tests.world.groups import Group, Reader, spans
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.model.segment import parse_segment_name
from weir.reader_groups import positions
from weir.reader_groups.batch import Batch
from weir.reader_groups.groups.reset import reset_reader_group

MINUTE = 60_000_000


@pytest.fixture
def hours(lane: Lane) -> Lane:
    """Six commits to both segments, an hour apart."""
    for _ in range(6):
        lane.append({"0.0": 2, "1.0": 2})
    spread_out(lane, 60 * MINUTE)
    return lane


def spread_out(lane: Lane, apart: int) -> None:
    """Let the commits of a stream be so many microseconds apart, in their order."""
    for table in ("time_index", "transaction"):
        run(
            lane.database,
            f"""UPDATE {table} t SET clock = n.clock FROM (
                SELECT transaction_number, CAST(:apart AS bigint) * transaction_number AS clock
                FROM transaction WHERE stream_id = :s) n
            WHERE t.stream_id = :s AND t.transaction_number = n.transaction_number""",
            s=lane.stream_id, apart=apart,
        )  # fmt: skip


def waiting(group: Group) -> list[Any]:
    return group.rows("SELECT * FROM weir.waiting_readers WHERE reader_group = :n", n=group.name)


def disorder(group: Group) -> Any:
    [row] = group.rows("SELECT * FROM weir.disorder WHERE reader_group = :n", n=group.name)
    return row


def test_no_batch_goes_further_beyond_what_another_reader_has_not_read_than_max_ahead(
    hours: Lane,
) -> None:
    group = Group.made(hours, max_ahead=2 * 3600)
    slow, fast = group.reader("a"), group.reader("b")
    held = slow.must_open(2, expected=2)
    assert spans(held) == [("0.0", 0, 2)]
    first = fast.must_open(expected=2)
    assert spans(first) == [("1.0", 0, 6)], "until two hours after the first"
    fast.commit(first)
    assert fast.open(expected=2) is None
    [row] = waiting(group)
    assert (
        row.reader_id, row.reason, row.waits_for, row.batch_id, row.segment, row.lease_expired,
    ) == (
        "b", "max_ahead", "a", held.batch_id, "0.0", False,
    )  # fmt: skip
    assert row.may_read_until - row.oldest_unread == timedelta(hours=2)
    slow.commit(held)
    assert waiting(group) == []
    assert spans(fast.must_open(expected=2)) == [("1.0", 6, 8)]


@pytest.mark.random
def test_however_readers_come_and_go_none_is_further_ahead_than_it_may(
    shared_database: Database,
) -> None:
    random = random_for("max_ahead")
    lane = Lane.made(shared_database, segments=4)
    for _ in range(16):
        if random.random() < 0.2:
            lane.scale(random.choice(lane.active()), parts=random.choice([1, 2]))
        lane.append({name: random.randint(1, 3) for name in lane.active() if random.random() < 0.6})
    most = 5  # commits, which are a minute apart
    spread_out(lane, MINUTE)
    group = Group.made(lane, max_ahead=most * 60)
    entries = lane.rows(
        "SELECT segment_id, start_offset, events, clock FROM time_index WHERE stream_id = :s"
    )

    def clocks(segment_id: int, first: int, past: int) -> list[int]:
        return [
            e.clock
            for e in entries
            if e.segment_id == segment_id and first < e.start_offset + e.events
            and e.start_offset < past
        ]  # fmt: skip

    readers: dict[str, Reader] = {}
    held: dict[str, Batch] = {}
    batch: Batch | None
    read = 0
    while read < sum(lane.sizes().values()):
        name = random.choice("abc")
        if name not in readers or random.random() < 0.1:
            if name in readers:  # it died; who comes next takes over its batch
                group.lapse(name)
                held.pop(name, None)
            readers[name] = group.reader(name)
        if name in held and random.random() < 0.5:
            readers[name].commit(batch := held.pop(name))
            read += batch.events
        elif name not in held:
            before = group.batches()
            batch = readers[name].open(random.choice([4, 10, 40]), expected=random.choice([1, 3]))
            if batch is None:
                continue
            held = {r: b for r, b in held.items() if b.batch_id != batch.batch_id}
            held[name] = batch
            if batch.batch_id in {b.batch_id for b in before}:
                continue
            mine = {b.segment_id for b in batch.bounds}
            others = [
                min(found)
                for s, (_, offset, _) in group.states().items()
                if offset is not None and (segment_id := parse_segment_name(s)) not in mine
                and (found := clocks(segment_id, offset, 10**9))
            ]  # fmt: skip
            newest = max(c for b in batch.bounds for c in clocks(b.segment_id, b.start, b.end))
            assert newest <= min(others, default=newest) + most * MINUTE
    assert group.cut() == lane.tail()


def test_nobody_waits_for_events_beyond_the_end_of_the_group(shared_database: Database) -> None:
    ended, longer = (Lane.made(shared_database, segments=1) for _ in range(2))
    ended.append({"0.0": 1})
    longer.append({"0.0": 1})
    end = ended.tail()
    ended.append({"0.0": 1})
    for _ in range(4):
        longer.append({"0.0": 1})
    for lane in (ended, longer):
        spread_out(lane, 60 * MINUTE)
    ends = {str(ended.name): end, str(longer.name): longer.tail()}
    group = Group.made(ended, longer, max_ahead=60, end=json.dumps(ends))
    readers = [group.reader("a"), group.reader("b")]
    for _ in range(3):
        for reader in readers:
            if batch := reader.open(expected=2):
                reader.commit(batch)
    assert (group.cut(ended), group.cut(longer)) == (end, longer.tail())
    assert waiting(group) == []


def test_one_reader_alone_is_never_ahead_of_anybody(hours: Lane) -> None:
    group = Group.made(hours, max_ahead=1)
    assert group.reader().must_open().events == 24


def test_what_was_read_late_and_what_was_left_behind_is_measured(hours: Lane) -> None:
    group = Group.made(hours)
    slow, fast = group.reader("a"), group.reader("b")
    held = slow.must_open(2, expected=2)
    fast.commit(fast.must_open(expected=2))
    assert disorder(group).hole == timedelta(hours=5)
    assert disorder(group).max_lateness == timedelta()
    slow.commit(held)
    slow.commit(slow.must_open(expected=2))
    found = {b.batch_id: b for b in group.batches()}
    hour = 60 * MINUTE
    assert [(b.max_lateness, b.p99_lateness, b.hole) for _, b in sorted(found.items())] == [
        (5 * hour, 5 * hour, 4 * hour), (0, 0, 5 * hour), (4 * hour, 4 * hour, 0),
    ]  # fmt: skip
    row = disorder(group)
    assert (row.max_lateness, row.promise, row.readers) == (
        timedelta(hours=5), "write order of each key", 2,
    )  # fmt: skip


@pytest.mark.parametrize("late", [1, 2])
def test_one_late_event_in_a_hundred_is_not_in_the_99th_percentile(lane: Lane, late: int) -> None:
    lane.append({"0.0": late})
    lane.append({"1.0": 1})
    lane.append({"0.0": 100 - late})
    group = Group.made(lane)
    slow, fast = group.reader("a"), group.reader("b")
    held = slow.must_open(expected=2)
    assert held.events == 100
    fast.commit(fast.must_open(expected=2))
    slow.commit(held)
    batch = group.batches()[0]
    assert batch.max_lateness > 0
    assert batch.p99_lateness == (batch.max_lateness if late == 2 else 0)


def test_after_a_reset_lateness_is_counted_anew(hours: Lane) -> None:
    group = Group.made(hours)
    reader = group.reader()
    reader.commit(reader.must_open())
    reset_reader_group(
        group.database, group.name, "start", allow_repeat=True, request_id=group.name
    )
    reader = group.reader()
    reader.read_all(4)
    assert {(b.max_lateness, b.hole) for b in group.batches()} == {(0, 0)}


def test_order_holds_where_a_batch_does_not_see_to_the_tail(
    shared_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One half is scaled again and again, the other never: it must not be read ahead of the first.
    monkeypatch.setattr(positions, "MOST_SEGMENTS_AHEAD", 3)
    lane = Lane.made(shared_database)
    name = "0.0"
    for _ in range(8):
        lane.append({name: 1, "1.0": 1})
        [name] = lane.scale(name, parts=1)
    reader = Group.made(lane).reader()
    read = []
    while batch := reader.open(order="stream"):
        read.append(batch.events)
        reader.commit(batch)
    assert sum(read) == 16
    assert len(read) > 1
    assert {b.hole for b in reader.group.batches()} == {0}
