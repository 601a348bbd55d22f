"""A run ends when all is committed up to the tail that it saw, by whichever reader."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection

from tests.world.groups import ALL, Group, Reader
from tests.world.groups import budget as events
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches import next as module
from weir.reader_groups.batches.next import next_batch
from weir.reader_groups.batches.reading import Reading

T = TypeVar("T")
Waits = Callable[..., Future[Batch | None]]


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPoolExecutor]:
    monkeypatch.setattr(module, "PAUSE", 0.02)
    with ThreadPoolExecutor(1) as pool:
        yield pool


def turn(
    reader: Reader, until: dict[int, Any] | None = None, *, waits: Event | None = None
) -> Batch | None:
    def sign() -> bool:
        if waits is not None:
            waits.set()
        return False

    return next_batch(
        reader.group.database, reader.group.name, reader.reader_id, reader.token,
        Reading(events(ALL)), lease=0.0, until=until or reader.group.tails(),
        waits=sign,
    )  # fmt: skip


@pytest.fixture
def waits(pool: ThreadPoolExecutor) -> Waits:
    """Return `waits(reader, ...)`, whose turn it becomes in a thread, and who waits."""

    def waits(*given: Any) -> Future[Batch | None]:
        begun = Event()
        turning = pool.submit(turn, *given, waits=begun)
        assert begun.wait(120)
        assert not turning.done()
        return turning

    return waits


def test_a_reader_for_whom_nothing_is_left_gets_its_share_of_the_next_batches(
    group: Group, waits: Waits
) -> None:
    first = group.reader("first")
    batch = first.must_open(budget=10)
    assert len(batch.bounds) == 2, "there is more, but in the same segments"
    second = group.reader("second")
    waiting = waits(second)
    first.commit(batch)
    mine = first.must_open()
    theirs = waiting.result(timeout=60)
    assert theirs is not None
    assert {b.segment_id for b in mine.bounds}.isdisjoint(b.segment_id for b in theirs.bounds)
    first.commit(mine)
    second.commit(theirs)
    assert (turn(first), turn(second)) == (None, None)
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_a_reader_that_waits_takes_over_from_one_that_dies(group: Group, waits: Waits) -> None:
    batch = group.reader("dies").must_open()
    waiting = waits(group.reader("waits"))
    group.lapse("dies")
    taken = waiting.result(timeout=60)
    assert taken is not None
    assert (taken.batch_id, taken.bounds, taken.attempt) == (batch.batch_id, batch.bounds, 2)


def test_a_run_ends_when_others_have_committed_all_that_it_saw(
    lane: Lane, group: Group, waits: Waits
) -> None:
    other = group.reader("other")
    batch = other.must_open()
    seen = group.tails()
    lane.append({"0.0": 7})
    waiting = waits(group.reader("run"), seen)
    other.commit(batch)
    assert waiting.result(timeout=60) is None
    assert group.cut() == {"0.0": 10, "1.0": 10}, "what came later is left for the next run"


def test_a_reader_that_waits_at_the_end_of_its_run_keeps_nothing_from_others(
    lane: Lane, group: Group, pool: ThreadPoolExecutor
) -> None:
    slow, early = group.reader("slow"), group.reader("early")
    held = slow.must_open(expected=2)
    seen = group.tails()
    early.commit(early.must_open(expected=2))
    [mine] = group.owned("early")
    lane.append({mine: 1476})
    group.reader("late")  # which finds nothing that is its own
    batch = pool.submit(turn, early, seen).result(timeout=60)
    assert batch is not None, "it owns what is unread, reads nothing, and waits for the slow one"
    assert batch.events == 1476
    early.commit(batch)
    slow.commit(held)
    assert turn(early, seen) is None


def test_a_reader_reads_what_another_left_unread_whenever_that_one_leaves(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.02)
    leaves = group.reader("leaves")
    batch = leaves.must_open(budget=10)
    stays = group.reader("stays")

    class Interrupted(Database):
        """Between its first transaction and its next another reader commits and leaves."""

        begun = False

        def transaction(self, work: Callable[[Connection], T]) -> T:
            result = super().transaction(work)
            if not self.begun:
                self.begun = True
                leaves.commit(batch)
                leaves.leave()
            return result

    database = Interrupted(group.database._dsn, patience=60.0, connect_patience=60.0)
    rest = next_batch(
        database, group.name, "stays", stays.token, Reading(events(ALL)), lease=0.0,
        until=group.tails(),
    )  # fmt: skip
    database.dispose()
    assert rest is not None, "its run would end with 10 events of what it saw unread"
    assert rest.events == 10


def test_no_run_ends_when_a_reader_frees_the_last_segment_for_a_faster_one(
    lane: Lane, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.02)
    fast, slow = group.reader("fast"), group.reader("slow")
    for reader in (fast, slow):
        reader.commit(reader.must_open(expected=2))
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: [5, 5]})
    assert fast.open(expected=2) is None
    slow.commit(slow.must_open(5, expected=2))
    run(
        lane.database,
        """UPDATE reader_batch SET opened_at = committed_at - CASE reader_id
            WHEN 'fast' THEN interval '1 second' ELSE interval '10 seconds' END
        WHERE group_name = :name""",
        name=group.name,
    )
    assert group.owned("slow") == [merged]
    assert [fast.open(expected=2), slow.open(expected=2)] == [None, None]
    assert group.states()[merged] == ("unassigned", 5, None)

    def to_the_end(reader: Reader) -> int:
        read = 0
        while batch := turn(reader):
            read += batch.events
            reader.commit(batch)
        return read

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(to_the_end, [slow, fast])) == [0, 5]


def test_a_reader_does_not_wait_when_nothing_is_left_or_nobody_has_it(
    lane: Lane, group: Group
) -> None:
    reader = group.reader()
    group.reader("idle")
    seen = group.tails()
    reader.read_all(expected=0)
    group.lapse("idle")
    reader.read_all()
    group.reader("idle again")
    lane.append({"0.0": 1})
    assert turn(reader, seen) is None, "all that it saw is committed"
    group.lapse("idle again")
    far = {lane.stream_id: {"0.0": 12, "1.0": 10}}
    batch = turn(reader, far)
    assert batch is not None
    reader.commit(batch)
    assert turn(reader, far) is None, "there is nobody who could have the rest"


def test_readers_with_max_ahead_whose_runs_began_at_different_times_do_not_wait_for_each_other(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.02)
    behind, ahead = (Lane.made(database, segments=1) for _ in range(2))
    behind.append({"0.0": 20})
    ahead.append({"0.0": 10})
    for table in ("time_index", "transaction"):  # the clocks of the streams differ by years
        run(
            database, f"UPDATE {table} SET clock = clock + 1000000000000000 WHERE stream_id = :s",
            s=ahead.stream_id,
        )  # fmt: skip
    group = Group.made(behind, ahead, max_ahead=60)
    early, late = group.reader("a"), group.reader("b")
    seen = group.tails()
    batch = early.must_open(expected=2, until=seen)
    assert [(b.stream_id, b.end) for b in batch.bounds] == [(behind.stream_id, 20)]
    early.commit(batch)
    behind.append({"0.0": 5})  # which the run of the other reader is to read

    def to_the_end(reader: Reader, until: dict[int, Any]) -> None:
        while batch := turn(reader, until):
            reader.commit(batch)

    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(to_the_end, early, seen), pool.submit(to_the_end, late, group.tails())]
        done, waiting = wait(runs, timeout=60)
        early.leave()
        late.leave()
    assert not waiting
    assert [one.result() for one in done] == [None, None]
    assert (group.cut(behind), group.cut(ahead)) == ({"0.0": 25}, {"0.0": 10})
